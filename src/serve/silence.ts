// What the supervisor does about loops that are blocked, which it tells of with their stacks, and about
// processes that were stopped. A loop is told of at two seconds, at five, and again each time that its silence
// has doubled. While its process was stopped (SIGSTOP, a debugger) nothing of it ran, no callback either: that
// time does not count. Not here: how both are known (watch.ts), and who takes their place.

import { announcements } from '../internal/index.js';
import { requireNative } from '../native.js';
import type { Row } from './board.js';
import type { FilledServeOptions } from './options.js';
import { placeIn } from './stack-text.js';
import { blockedLoops, silentMs, stackAfterMs, stoppedMs, wordAfterMs } from './watch.js';

/** Who has not come for so long, though rung each second, is stopped: nothing of it runs, no callback. */
const stoppedAfterMs = 2000;
/** Who runs has come since the last ring but one; of who has not is said nothing yet. */
const lateAfterMs = 1000;

/** What is used of a server's process. */
export interface WatchedProcess {
  readonly number: number;
  readonly pid: number | undefined;
  readonly state: string;
  readonly servedMs: number;
  stackOf(loop: number): Promise<string | undefined>;
  kill(why: string): void;
}

interface SilentLoop<Process> {
  readonly process: Process;
  readonly loop: number;
  readonly ms: number;
}

/** A loop that does not come back, since it was last heard of. */
interface Watched {
  /** For how much of its silence its process was stopped, and when it is to be told of, in ms. */
  stoppedMs: number;
  dueMs: number;
  isTold: boolean;
  /** Its stack is being asked for. */
  isAsked: boolean;
}

export class Silence<Process extends WatchedProcess> {
  readonly #rows: readonly (readonly Row[])[];
  /** A process may be silent for so long. */
  readonly #limitMs: number;
  readonly #watched = new Map<Row | undefined, Watched>();

  constructor(
    rows: readonly (readonly Row[])[],
    { blockedTimeoutMs }: Pick<FilledServeOptions, 'blockedTimeoutMs'>,
  ) {
    this.#rows = rows;
    this.#limitMs = blockedTimeoutMs;
  }

  /** Tells where blocked loops are; returns those that were told of and are blocked for too long. */
  tellBlocked(processes: readonly (Process | undefined)[]): SilentLoop<Process>[] {
    const stay: SilentLoop<Process>[] = [];
    const blocked = this.#blocked(processes);
    for (const row of this.#watched.keys()) if (!blocked.has(row)) this.#watched.delete(row);
    for (const [row, { process, loop, ms: silentMs }] of blocked) {
      if (process.state !== 'ready') continue;
      const watched = this.#watchedAt(row);
      const stoppedMs = this.#stoppedMs(process);
      if (stoppedMs > stoppedAfterMs) watched.stoppedMs = silentMs;
      if (stoppedMs > lateAfterMs) continue;
      const ms = silentMs - watched.stoppedMs;
      if (watched.isTold && ms >= this.#limitMs) stay.push({ process, loop, ms });
      else if (ms >= watched.dueMs && !watched.isAsked)
        this.#tell(row, watched, { process, loop, ms });
    }
    return stay;
  }

  #watchedAt(row: Row | undefined): Watched {
    const found = this.#watched.get(row);
    if (found !== undefined) return found;
    const dueMs = Math.min(wordAfterMs, this.#limitMs);
    const watched = { stoppedMs: 0, dueMs, isTold: false, isAsked: false };
    this.#watched.set(row, watched);
    return watched;
  }

  #blocked(processes: readonly (Process | undefined)[]): Map<Row | undefined, SilentLoop<Process>> {
    const nowMs = requireNative().boardNowMs();
    const found = blockedLoops(this.#rows, nowMs, Math.min(wordAfterMs, this.#limitMs));
    return new Map(
      found.flatMap(({ process: number, index, blockedMs }) => {
        const process = processes[number];
        const loop = { loop: index, ms: blockedMs };
        return process === undefined ? [] : [[this.#rows[number]?.[index], { process, ...loop }]];
      }),
    );
  }

  #tell(row: Row | undefined, watched: Watched, silent: SilentLoop<Process>): void {
    watched.isTold = true;
    watched.isAsked = true;
    watched.dueMs = silent.ms < stackAfterMs ? stackAfterMs : 2 * silent.ms;
    void silent.process.stackOf(silent.loop).then((stack) => {
      watched.isAsked = false;
      this.#announce(row, watched, silent, stack);
    });
  }

  /** Of a loop that has come back meanwhile the stack shows what it did then. */
  #announce(
    row: Row | undefined,
    watched: Watched,
    { process, loop, ms }: SilentLoop<Process>,
    stack: string | undefined,
  ): void {
    const nowMs = row === undefined ? 0 : silentMs(row, requireNative().boardNowMs());
    const isBack = nowMs - watched.stoppedMs < ms;
    const told = isBack
      ? { blockedMs: ms, place: undefined, stack: undefined }
      : { blockedMs: nowMs - watched.stoppedMs, place: placeIn(stack), stack };
    announcements.serverBlocked.publish({ pid: process.pid, loop, ...told });
  }

  /** One in which nothing runs any more (SIGSTOP, a debugger) cannot drain. */
  killStopped(processes: readonly (Process | undefined)[]): void {
    for (const each of processes) {
      if (each?.state !== 'ready' && each?.state !== 'draining') continue;
      const ms = this.#stoppedMs(each);
      if (ms >= this.#limitMs) each.kill(`it was stopped for ${Math.round(ms)} ms`);
    }
  }

  #stoppedMs({ number, servedMs }: Process): number {
    return stoppedMs(this.#rows[number] ?? [], requireNative().boardNowMs(), servedMs);
  }
}
