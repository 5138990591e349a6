// The rules for what a partition sends to its parent, beside the kinds of frames (protocol.ts) and the contents of
// values (context/decode/data-only.ts). Honest code never meets them; a partition that breaks one is ended. A trusted
// worker has no such object, and pays for none of it.

import { CodedError } from '../../errors.js';
import { setImmediate, setTimeout } from '../../lib/index.js';
import { readError } from '../link.js';
import { frame, streamLeadItems } from '../protocol.js';
import type { ReachedLimit } from '../types.js';
import { limitOfChannel } from './ends.js';
import type { FilledPartition } from './options.js';

/** The worker that is in the partition. */
export interface RuledWorker {
  readonly partition: FilledPartition;
  /** Time that it may take to leave, in ms. */
  readonly leaveMs: number;
  /** Name in messages. */
  readonly label: () => string;
  /** Calls that were handed over so far. */
  readonly sentCalls: () => number;
  /** Called once, at the first broken rule. */
  readonly onDistrust: () => void;
  /** Ends its channel for that rule. */
  readonly fail: (error: CodedError) => void;
  readonly hasExited: () => boolean;
  /** True: it has calls to answer, and a channel for that. */
  readonly isWorking: () => boolean;
  readonly kill: () => void;
}

/** Frames for it that may wait for room: one that never reads would make them grow without limit. */
const maxWaitingFrames = 10_000;
const maxWaitingBytes = 64 * 2 ** 20;
/** Reports that wait for an answer at a time. */
const maxOpenReports = 1000;
/** Frames that nothing explains which the parent has sent, beside one for each call: each costs time to read. */
const maxUnaskedFrames = 1000;

export class PartitionRules {
  readonly #worker: RuledWorker;
  /** By slot: items that a stream may still send; `undefined`: none streams there. */
  readonly #credits: (number | undefined)[] = [];
  #unaskedFrames = 0;
  #openReports = 0;
  /** True: it is about to be ended, and what it sends is ignored. */
  isDistrusted = false;

  constructor(worker: RuledWorker) {
    this.#worker = worker;
  }

  /** Ends a partition that sends what no honest one does: its other values are no better. */
  distrust(error: unknown): void {
    if (this.isDistrusted) return;
    this.isDistrusted = true;
    this.#worker.onDistrust();
    const known = readError(error);
    setImmediate(() => this.#worker.fail(known)); // behind the answer of the call
  }

  #broken(what: string): void {
    this.distrust(new CodedError('WORKER_PROTOCOL', `${this.#worker.label()} ${what}`));
  }

  /** False: it streams twice at one call, or sends items beyond those requested. */
  mayStream(kind: number, slot: number): boolean {
    const credit = this.#credits[slot];
    const isItem = kind === frame.item;
    if (isItem ? credit !== undefined && credit > 0 : credit === undefined) {
      this.#credits[slot] = isItem ? (credit ?? 0) - 1 : streamLeadItems;
      return true;
    }
    this.#broken(`sent ${isItem ? 'an item' : 'a stream'} too much`);
    return false;
  }

  /** The stream of this slot may send so many items more. */
  granted(slot: number, items: number): void {
    const credit = this.#credits[slot];
    if (credit !== undefined) this.#credits[slot] = credit + items;
  }

  /** The call of this slot is over. */
  left(slot: number): void {
    this.#credits[slot] = undefined;
  }

  /** Counts a frame that answers nothing. */
  unasked(): void {
    this.#unaskedFrames += 1;
    if (this.#unaskedFrames <= maxUnaskedFrames + this.#worker.sentCalls()) return;
    this.#broken(`sent ${this.#unaskedFrames} frames that answer nothing`);
  }

  /** Counts a report, which may be a call of a function of the program, until it is answered. */
  reported(): void {
    this.#openReports += 1;
    if (this.#openReports <= maxOpenReports) return;
    this.#broken(`reports ${this.#openReports} times before an answer`);
  }

  reportTaken(): void {
    this.#openReports -= 1;
  }

  /** Checks the frames that wait for room in its channel, after an answer to a report of it. */
  checkWaiting(frames: number, bytes: number): void {
    if (frames > maxWaitingFrames || bytes > maxWaitingBytes) {
      this.#broken('reports, and reads no answer');
    }
  }

  /** Ends one that stays when it is to leave, or without its channel: no other would take its place. */
  killLater(): void {
    setTimeout(() => {
      if (this.#worker.hasExited()) return;
      if (this.#worker.isWorking()) this.killLater();
      else this.#worker.kill();
    }, this.#worker.leaveMs).unref();
  }

  /** The limit for which its channel has ended. */
  limitOf(channelError: Error | undefined): ReachedLimit | undefined {
    return limitOfChannel(channelError, this.isDistrusted, this.#worker.partition);
  }
}
