// What the supervisor does about loops that are blocked, which it tells of with their stacks, and about
// processes that were stopped. Not here: how both are known (watch.ts), and who takes their place.

import { announcements } from '../internal/index.js';
import { requireNative } from '../native.js';
import type { Row } from './board.js';
import type { FilledServeOptions } from './options.js';
import type { ServerProcess } from './server-process.js';
import { blockedLoops, silentMs, stackAfterMs, stoppedMs } from './watch.js';

/** Who has not come for so long, though rung each second, is stopped: nothing of it runs, no callback. */
const stoppedAfterMs = 2000;

type Processes = readonly (ServerProcess | undefined)[];

interface SilentLoop {
  readonly process: ServerProcess;
  readonly loop: number;
  readonly ms: number;
}

export class Silence {
  readonly #rows: readonly (readonly Row[])[];
  /** A process may be silent for so long. */
  readonly #limitMs: number;
  /** Blocked loops whose stack was told. */
  readonly #shown = new Set<Row | undefined>();

  constructor(rows: readonly (readonly Row[])[], { blockedTimeoutMs }: FilledServeOptions) {
    this.#rows = rows;
    this.#limitMs = blockedTimeoutMs;
  }

  /** Tells where blocked loops are, once for each time; returns those that were told and stay so. */
  tellBlocked(processes: Processes): SilentLoop[] {
    const stay: SilentLoop[] = [];
    const blocked = this.#blocked(processes);
    for (const row of this.#shown) if (!blocked.has(row)) this.#shown.delete(row);
    for (const [row, each] of blocked) {
      const { process, loop, ms } = each;
      if (process.state !== 'ready' || this.#stoppedMs(process) > stoppedAfterMs) continue;
      if (!this.#shown.has(row)) {
        this.#shown.add(row);
        void process.stackOf(loop).then((stack) => this.#announce(row, each, stack));
      } else if (ms >= this.#limitMs) stay.push(each);
    }
    return stay;
  }

  #blocked(processes: Processes): Map<Row | undefined, SilentLoop> {
    const nowMs = requireNative().boardNowMs();
    const found = blockedLoops(this.#rows, nowMs, Math.min(stackAfterMs, this.#limitMs));
    return new Map(
      found.flatMap(({ process: number, index, blockedMs }) => {
        const process = processes[number];
        const loop = { loop: index, ms: blockedMs };
        return process === undefined ? [] : [[this.#rows[number]?.[index], { process, ...loop }]];
      }),
    );
  }

  /** Of a loop that has come back meanwhile the stack shows what it did then. */
  #announce(row: Row | undefined, { process, loop, ms }: SilentLoop, stack?: string): void {
    const nowMs = row === undefined ? 0 : silentMs(row, requireNative().boardNowMs());
    const isBack = nowMs < ms;
    const told = isBack ? { blockedMs: ms, stack: undefined } : { blockedMs: nowMs, stack };
    announcements.serverBlocked.publish({ pid: process.pid, loop, ...told });
  }

  /** One in which nothing runs any more (SIGSTOP, a debugger) cannot drain. */
  killStopped(processes: Processes): void {
    for (const each of processes) {
      if (each?.state !== 'ready' && each?.state !== 'draining') continue;
      const ms = this.#stoppedMs(each);
      if (ms >= this.#limitMs) each.kill(`it was stopped for ${Math.round(ms)} ms`);
    }
  }

  #stoppedMs({ number, servedMs }: ServerProcess): number {
    return stoppedMs(this.#rows[number] ?? [], requireNative().boardNowMs(), servedMs);
  }
}
