// Whether the other ends of streams are there: every other second each is asked. Where the server says that
// nobody is (503), or nobody answers for long, it is gone: a machine that is cut off without a word is there
// for the server, for minutes. Not here: the frames, and what becomes of a stream (peer.ts).

const probeMs = 2000;
/** Once the server may be wrong, after it was away. */
const maxMissed = 2;
/** 20 seconds: as long as the ends of a tunnel wait for each other. */
const maxUnanswered = 10;

interface Watched {
  readonly address: string;
  /** Where it answers. */
  readonly number: number;
  readonly watchers: Set<() => void>;
  missed: number;
  unanswered: number;
}

export interface ProbeOptions {
  /** A number that nothing else has below the inbox. */
  readonly newNumber: () => number;
  /** Asks who consumes `address` to answer to `number`; answers whether it was sent. */
  readonly probe: (address: string, number: number) => boolean;
}

export class Probes {
  readonly #options: ProbeOptions;
  readonly #watched = new Map<string, Watched>();
  /** The same, by their numbers: there may be many, and each is answered. */
  readonly #byNumber = new Map<number, Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  /** Calls `onGone` once who consumes `address` is gone, unless what this answers was called before. */
  watch(address: string, onGone: () => void): () => void {
    const watched = this.#watched.get(address) ?? this.#add(address);
    watched.watchers.add(onGone);
    this.#timer ??= setInterval(this.#probeAll, probeMs).unref();
    return () => {
      watched.watchers.delete(onGone);
      if (watched.watchers.size === 0) this.#forget(watched);
    };
  }

  #add(address: string): Watched {
    const number = this.#options.newNumber();
    const watched = { address, number, watchers: new Set<() => void>(), missed: 0, unanswered: 0 };
    this.#watched.set(address, watched);
    this.#byNumber.set(number, watched);
    return watched;
  }

  /** Its address may be watched anew by then. */
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
      else return; // no room now, or no connection: at the next turn
    }
  };

  /** It has answered. */
  answered(number: number): void {
    const watched = this.#byNumber.get(number);
    if (watched !== undefined) Object.assign(watched, { missed: 0, unanswered: 0 });
  }

  /** The server says that it is not there; answers whether `number` is one of these. */
  missed(number: number): boolean {
    const watched = this.#byNumber.get(number);
    if (watched === undefined) return false;
    watched.missed += 1;
    if (watched.missed >= maxMissed) this.#lose(watched);
    return true;
  }

  #lose(watched: Watched): void {
    this.#forget(watched);
    for (const onGone of watched.watchers) onGone();
  }

  /** All are gone, as far as anybody knows. */
  loseAll(): void {
    for (const watched of [...this.#watched.values()]) this.#lose(watched);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
