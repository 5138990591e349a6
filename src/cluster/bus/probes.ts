// Liveness of the other ends of streams, each probed every other second. An end is gone when the server
// reports no subscriber (503) or no answer arrives for long: the server keeps a machine that was cut off
// silently for minutes. Not here: the frames, and the consequences for a stream (peer.ts).

import type { Found } from '../../bus/index.js';

const probeMs = 2000;
/** Reports of absence before an end is gone: a server that was away may be wrong once. */
const maxMissed = 2;
/** 20 seconds: the same as for the ends of a tunnel. */
const maxUnanswered = 10;

type OnGone = (found: Found, hasAnswered: boolean) => void;

interface Watched {
  readonly address: string;
  /** Number of the address for answers. */
  readonly number: number;
  /** True: the consumer has answered since this watcher began. */
  readonly watchers: Map<OnGone, boolean>;
  missed: number;
  unanswered: number;
}

export interface ProbeOptions {
  /** Returns a number that is unused below the inbox. */
  readonly newNumber: () => number;
  /** Sends a probe to the consumer of `address`, which answers to `number`; returns whether it was sent. */
  readonly probe: (address: string, number: number) => boolean;
}

export class Probes {
  readonly #options: ProbeOptions;
  readonly #watched = new Map<string, Watched>();
  /** The same by number: there may be many, and every answer needs a lookup. */
  readonly #byNumber = new Map<number, Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  /** Calls `onGone` once the consumer of `address` is gone; the returned function cancels that. */
  watch(address: string, onGone: OnGone): () => void {
    const watched = this.#watched.get(address) ?? this.#add(address);
    watched.watchers.set(onGone, false);
    this.#timer ??= setInterval(this.#probeAll, probeMs).unref();
    return () => {
      watched.watchers.delete(onGone);
      if (watched.watchers.size === 0) this.#forget(watched);
    };
  }

  #add(address: string): Watched {
    const number = this.#options.newNumber();
    const watchers = new Map<OnGone, boolean>();
    const watched = { address, number, watchers, missed: 0, unanswered: 0 };
    this.#watched.set(address, watched);
    this.#byNumber.set(number, watched);
    return watched;
  }

  /** The address may be watched anew by then. */
  #forget(watched: Watched): void {
    const { address, number } = watched;
    this.#byNumber.delete(number);
    if (this.#watched.get(address) === watched) this.#watched.delete(address);
  }

  readonly #probeAll = (): void => {
    if (this.#watched.size === 0) this.close();
    for (const watched of this.#watched.values()) {
      if (watched.unanswered >= maxUnanswered) this.#lose(watched);
      else if (this.#options.probe(watched.address, watched.number)) watched.unanswered += 1;
      else return; // no room or no connection now: continued at the next tick
    }
  };

  /** Records an answer. */
  answered(number: number): void {
    const watched = this.#byNumber.get(number);
    if (watched === undefined) return;
    Object.assign(watched, { missed: 0, unanswered: 0 });
    for (const each of watched.watchers.keys()) watched.watchers.set(each, true);
  }

  /** Records the server's report of absence; returns false when `number` is no probe's. */
  missed(number: number): boolean {
    const watched = this.#byNumber.get(number);
    if (watched === undefined) return false;
    watched.missed += 1;
    if (watched.missed >= maxMissed) this.#lose(watched);
    return true;
  }

  #lose(watched: Watched, isUnknown = false): void {
    this.#forget(watched);
    for (const [onGone, hasAnswered] of watched.watchers) {
      onGone(isUnknown ? 'unknown' : hasAnswered ? 'gone' : 'absent', hasAnswered);
    }
  }

  /** Ends all watches: the state of the other ends is unknown. */
  loseAll(): void {
    for (const watched of [...this.#watched.values()]) this.#lose(watched, true);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
