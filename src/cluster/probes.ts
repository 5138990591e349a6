// Whether the other ends of streams are there: every other second each is asked. Where the server says that
// nobody is (503), or nobody answers for long, it is gone: a machine that is cut off without a word is there
// for the server, for minutes. Not here: the frames, and what becomes of a stream (peer.ts).

const askMs = 2000;
/** Once the server may be wrong, after it was away. */
const mostMissed = 2;
/** 20 seconds: as long as the ends of a tunnel wait for each other. */
const mostUnanswered = 10;

interface Watched {
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
  readonly ask: (address: string, number: number) => boolean;
}

export class Probes {
  readonly #options: ProbeOptions;
  readonly #watched = new Map<string, Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  /** Calls `onGone` once who consumes `address` is gone, unless what this answers was called before. */
  watch(address: string, onGone: () => void): () => void {
    const known = this.#watched.get(address);
    const number = known?.number ?? this.#options.newNumber();
    const watched = known ?? { number, watchers: new Set(), missed: 0, unanswered: 0 };
    this.#watched.set(address, watched);
    watched.watchers.add(onGone);
    this.#timer ??= setInterval(this.#ask, askMs).unref();
    return () => {
      watched.watchers.delete(onGone);
      const isIdle = watched.watchers.size === 0 && this.#watched.get(address) === watched;
      if (isIdle) this.#watched.delete(address);
    };
  }

  readonly #ask = (): void => {
    if (this.#watched.size === 0) this.close();
    for (const [address, watched] of this.#watched) {
      if (watched.unanswered >= mostUnanswered) this.#lose(address);
      else if (this.#options.ask(address, watched.number)) watched.unanswered += 1;
      else return; // no room now, or no connection: at the next turn
    }
  };

  /** It has answered. */
  heard(number: number): void {
    const [, watched] = this.#at(number) ?? [];
    if (watched !== undefined) Object.assign(watched, { missed: 0, unanswered: 0 });
  }

  /** The server says that it is not there; answers whether `number` is one of these. */
  missed(number: number): boolean {
    const [address, watched] = this.#at(number) ?? [];
    if (address === undefined || watched === undefined) return false;
    watched.missed += 1;
    if (watched.missed >= mostMissed) this.#lose(address);
    return true;
  }

  #at(number: number): [string, Watched] | undefined {
    return [...this.#watched].find(([, watched]) => watched.number === number);
  }

  #lose(address: string): void {
    const { watchers } = this.#watched.get(address) ?? { watchers: [] };
    this.#watched.delete(address);
    for (const onGone of watchers) onGone();
  }

  /** All are gone, as far as anybody knows. */
  loseAll(): void {
    for (const address of [...this.#watched.keys()]) this.#lose(address);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
