// A session of a worker with one parent: the connection over one channel, and the tasks that came by it.
// Most workers have one parent for their life; one that several share (shared-entry.ts) has a session with
// each of them.

import type { ChannelEnd } from '../../channels/index.js';
import {
  createImporter,
  createLateExporter,
  type Exporter,
  exportError,
  guardProgram,
  type Importer,
} from '../../context/receiving.js';
import { bufferCarrier } from '../both/buffers.js';
import type { ConcurrencyLimit } from '../both/concurrency-limit.js';
import type { Parcels } from '../both/parcels.js';
import { allocateFrom } from '../both/shared-memory.js';
import { Link } from '../link.js';
import { frame, noSetup, parseProgram } from '../protocol.js';
import { beforeLeaving, teardownMs } from './leave.js';
import { Relay, relayTo } from './relay.js';
import { Runner } from './runner.js';

export interface SessionOptions {
  readonly end: ChannelEnd;
  readonly concurrencyLimit: ConcurrencyLimit;
  /** Resident memory above which the worker requests its replacement, in bytes; 0: never. */
  readonly maxRssBytes: number;
  readonly isThread: boolean;
  /** True: it may send data alone. */
  readonly isPartition: boolean;
  /** For a thread. */
  readonly parcels?: Parcels | undefined;
  /** A definition was read; `loading` while it loads modules. */
  readonly onLearn: (loading: Promise<void> | undefined) => void;
  /** A task begins, or has ended. */
  readonly onTurn?: (isAtWork: boolean) => void;
  /** The parent has closed the channel, or is gone. */
  readonly onClose: () => void;
}

export class Session {
  readonly #end: ChannelEnd;
  readonly #exporter: Exporter;
  readonly #link: Link;
  readonly #importer: Importer;
  readonly #runner: Runner;
  readonly #relay: Relay;
  readonly #isPartition: boolean;
  readonly #fail: (error: unknown) => void;
  #setup: ((isEnd?: boolean) => unknown) | undefined;

  constructor(options: SessionOptions) {
    const { end, concurrencyLimit, maxRssBytes, isThread, isPartition } = options;
    const { parcels, onLearn, onTurn, onClose } = options;
    const carrier = bufferCarrier(() => end.blocks, parcels);
    const exporter = createLateExporter({ buffers: carrier, isDataOnly: isPartition });
    const importer = createImporter({ exporter, buffers: carrier });
    const link = new Link({
      end,
      exporter,
      importer,
      parcels,
      frames: undefined,
      what: 'the result',
      events: {
        onFrame: (kind, task, target, body) => {
          if (this.#runner.receive(kind, task, target, body)) return;
          if (kind === frame.program) guardProgram(parseProgram(link.codec.read(body)));
          else this.#relay.receive(kind, task, target, body);
        },
        onDrain: () => {},
        onClose,
        onLoad: (definition) => {
          if (end.claims !== undefined) end.claims.loading = definition;
        },
        onLearn,
      },
    });
    this.#isPartition = isPartition;
    this.#end = end;
    this.#exporter = exporter;
    this.#importer = importer;
    this.#link = link;
    this.#runner = new Runner({
      link,
      exporter,
      importer,
      claims: end.claims,
      concurrencyLimit,
      maxRssBytes,
      isThread,
      onSetup: (target, state) => void this.#setUp(target, state),
      onTeardown: () => beforeLeaving(async () => this.#setup?.(true), teardownMs),
      onTurn,
    });
    this.#relay = new Relay(link, exporter, end.blocks);
    this.#fail = (error) => {
      link.postSnapshot(frame.startFailed, 0, 0, exportError(exporter, error));
      link.close();
    };
  }

  /** Makes this parent the one of the code that runs from now on: for its nested maps and its memory. */
  takeTurn(): void {
    if (!this.#isPartition) relayTo(this.#relay); // without it, its maps run in it
    allocateFrom(this.#end.blocks);
  }

  /**
   * Sends the parent an uncaught error that is about to end this worker. Closes the channel, because only
   * that delivers gathered frames at once. Never throws.
   */
  uncaught(error: unknown): void {
    try {
      this.#link.postSnapshot(frame.uncaught, 0, 0, exportError(this.#exporter, error));
      this.#link.close();
    } catch {
      // Only the exit code can still report it.
    }
  }

  /** Requests that the parent uses another worker, once its calls are answered. */
  retire(): void {
    this.#link.post(frame.retire, 0, 0, undefined);
  }

  ref(): void {
    this.#link.ref();
  }

  get isAtWork(): boolean {
    return this.#runner.isAtWork;
  }

  /** Ends the session: the parent is gone; the worker goes on with others. */
  destroy(): void {
    this.#runner.end();
    this.#end.peerExited?.();
    this.#link.destroy();
  }

  /** `state`: empty if the definition has all. */
  #function(target: number, state: Uint8Array): (...args: unknown[]) => unknown {
    return this.#importer.importFunction(target, state.byteLength === 0 ? undefined : state);
  }

  async #setUp(target: number, state: Uint8Array): Promise<void> {
    try {
      if (target !== noSetup) {
        this.#setup = this.#function(target, state);
        await this.#setup();
      }
      this.#link.post(frame.ready, 0, 0, [process.pid, process.version]);
      this.#runner.ready();
    } catch (error) {
      this.#fail(error);
    }
  }
}
