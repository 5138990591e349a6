// Counts the requests that are answered while a trace runs. Servers of `manycore serve` show theirs to
// their user, on scoreboards. Other programs tell nobody how many they had: in a command they are counted
// inside (trace/request-counts.ts), in a process that ran before they are not known.

import { type LoopStatus, remoteServers } from '../serve/index.js';
import type { ThreadRequests, Trace } from '../trace/index.js';
import type { CountedRequests } from './trace-report.js';

/** A process that ends takes with it what it answered since the last look. */
const everyMs = 500;

type Loop = Pick<LoopStatus, 'pid' | 'loop' | 'requests'>;

/** What a server says of itself, as far as it is needed here. */
interface Server {
  readonly status: { readonly pid: number; readonly loops: readonly Loop[] };
}

/** What other programs have answered. */
interface Inside {
  read(): readonly ThreadRequests[];
}

export class TracedRequests {
  readonly #trace: Pick<Trace, 'pids'>;
  readonly #servers: () => Promise<readonly Server[]>;
  /** Whether the trace began before the program did. */
  readonly #isWhole: boolean;
  /** The last figure of each loop, by process and loop. */
  readonly #last = new Map<string, number>();
  /** Processes of the servers: what is counted inside of them is known already. */
  readonly #served = new Set<number | undefined>();
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;
  #hasBegun = false;
  #count = 0;

  constructor(trace: Pick<Trace, 'pids'>, isWhole: boolean, servers = serversHere) {
    this.#trace = trace;
    this.#isWhole = isWhole;
    this.#servers = servers;
  }

  /** Counts from here on. */
  async begin(): Promise<void> {
    await this.poll();
    this.#hasBegun = true;
    this.#timer = setInterval(() => void this.poll(), everyMs);
  }

  /** Counts what was answered since the last look. One look at a time. */
  poll(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /**
   * To be called right before the trace is stopped. `undefined` where nothing that serves HTTP was seen, or
   * where not all of it could be counted.
   */
  async end(inside?: Inside): Promise<CountedRequests | undefined> {
    clearInterval(this.#timer);
    await this.#polling;
    await this.poll();
    let count = this.#count;
    const others = (inside?.read() ?? []).filter(({ pid }) => !this.#served.has(pid));
    for (const other of others) {
      if (other.count === undefined) return undefined;
      count += other.count;
    }
    return this.#last.size + others.length === 0 ? undefined : { count };
  }

  async #poll(): Promise<void> {
    const servers = await this.#servers();
    const pids = new Set<number | undefined>(this.#trace.pids);
    for (const { status } of servers) {
      for (const loop of status.loops) {
        // Of what a traced supervisor has just started the trace may not know yet.
        if (!pids.has(loop.pid) && !pids.has(status.pid)) continue;
        this.#served.add(status.pid).add(loop.pid);
        this.#add(loop);
      }
    }
  }

  #add({ pid, loop, requests }: Loop): void {
    if (pid === undefined) return;
    const key = `${pid} ${loop}`;
    const known = this.#last.get(key);
    const isOld = known === undefined && !this.#isWhole && !this.#hasBegun;
    this.#last.set(key, requests);
    // A loop that was replaced counts from 0 again.
    const before = isOld ? requests : (known ?? 0);
    this.#count += requests < before ? requests : requests - before;
  }
}

/** Servers that cannot be asked are none. */
async function serversHere(): Promise<readonly Server[]> {
  try {
    return await remoteServers();
  } catch {
    return [];
  }
}
