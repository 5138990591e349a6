// Counts the requests that are answered during a trace. Servers of `manycore serve` have counts on
// scoreboards, readable by their user. In other programs requests are counted inside when the trace starts
// them as a command (syscalls/request-counts.ts); for processes that ran before the count is unknown.

import { type LoopStatus, remoteServers } from '../../../serve/index.js';
import type { ThreadRequests, Trace } from '../../../syscalls/index.js';
import type { CountedRequests } from './trace-report.js';

/** Poll interval: the requests of a process since the last poll are lost at its end. */
const everyMs = 500;

type Loop = Pick<LoopStatus, 'pid' | 'loop' | 'requests'>;

/** The used part of a server's status. */
interface Server {
  readonly status: { readonly pid: number; readonly loops: readonly Loop[] };
}

/** Counts of other programs. */
interface Inside {
  read(): readonly ThreadRequests[];
}

export class TracedRequests {
  readonly #trace: Pick<Trace, 'pids'>;
  readonly #servers: () => Promise<readonly Server[]>;
  /** True: the trace began before the program. */
  readonly #isWhole: boolean;
  /** Last count of each loop, by process and loop. */
  readonly #last = new Map<string, number>();
  /** Processes of servers, whose inside counts would count requests twice. */
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

  /** Starts counting. */
  async begin(): Promise<void> {
    await this.poll();
    this.#hasBegun = true;
    this.#timer = setInterval(() => void this.poll(), everyMs);
  }

  /** Counts requests since the last poll. Concurrent calls share one poll. */
  poll(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /**
   * Ends counting; call it right before the trace is stopped. `undefined`: no HTTP server was seen, or some
   * requests could not be counted.
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
        // The trace may not have seen a process yet that a traced supervisor has just started.
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

/** Running servers; none when they cannot be polled. */
async function serversHere(): Promise<readonly Server[]> {
  try {
    return await remoteServers();
  } catch {
    return [];
  }
}
