// The supervisor of a server: starts its processes, replaces those that end, reloads and scales
// without losing a connection, because it alone holds the listening sockets. Once a second it reads the
// scoreboard: for blocked loops and stopped processes (liveness.ts), processes without descriptors
// (descriptors.ts), processes to recycle (recycling.ts), and the number of processes or loops that the load
// needs (sizer.ts).
//
// A number in the scoreboard belongs to one process until that has ended, so there are twice as many
// numbers as processes: the old ones drain while the new ones serve.
// Long (over 400 lines), because starting, replacing and ending processes depend on each other.

import { isDeepStrictEqual } from 'node:util';
import { CodedError } from '../../errors.js';
import {
  announcements,
  defer,
  messageOf,
  type RestartOptions,
  RestartPolicy,
  restartDefaults,
  type ServerChangedMessage,
} from '../../lib/index.js';
import { rssBytesOf } from '../../proc/index.js';
import { type LoopStatus, rowStatus } from '../control/status.js';
import type { FilledServeOptions, Range } from '../options.js';
import type { BoundAddress } from '../protocol.js';
import { boardAt, type Row } from '../shared/board.js';
import type { HandedSocket, Predecessor } from '../shared/handover.js';
import type { AppSettings } from '../tickets.js';
import { Descriptors } from './descriptors.js';
import { Leadership } from './leadership.js';
import { Liveness } from './liveness.js';
import type { Mesh } from './mesh.js';
import { Recycling } from './recycling.js';
import { ServerProcess } from './server-process.js';
import { Sizer } from './sizer.js';
import { Sockets } from './sockets.js';
import { createSystem, type ProcessSettings, type SupervisorSystem } from './system.js';

/** A process that has served for this time counts as sound, whatever ends it later, in ms. */
const soundMs = 10_000;
const watchEveryMs = 1000;
/** Time for processes to answer `ring` in the scoreboard, in ms. */
const settleMs = 50;
/** A ring or a check so late is not followed: this process was busy, and the scoreboard may be stale. In ms. */
const lateMs = 1000;
/** Pause after a recycling whose new process failed, in ms. */
const recycleRestMs = 30_000;
/** Delay between two tries to replace a process, while others serve well, in ms. */
const maxDelayMs = 5000;

function serverClosed(): CodedError {
  return new CodedError('SERVE_CLOSED', 'the server is closed');
}

/** Adds how many processes are new already. */
function reloadFailed(error: unknown, replaced: number, all: number): unknown {
  if (!(error instanceof CodedError)) return error;
  const others = replaced === 0 ? 'all' : `${replaced} of ${all} processes are new, the others`;
  const message = `${others} serve on as they were: ${error.message}`;
  return new CodedError(error.code, message, { cause: error.cause });
}

export interface SupervisorExtras {
  /** With one the loops have channels to each other. */
  readonly mesh?: Mesh | undefined;
  /** The server that this one replaces. */
  readonly predecessor?: Predecessor | undefined;
  /** Restarts of lost processes. Default: up to `maxFailures` in a row. */
  readonly restarts?: RestartOptions | undefined;
  /** Called with each process that ended or did not start, and each loop that is lost, unrequested. */
  readonly onLost?: ((lost: LostProcess) => void) | undefined;
  /** Called with each process that has been stopped (SIGSTOP, a debugger) for two seconds. */
  readonly onStopped?: ((pid: number | undefined) => void) | undefined;
}

export interface LostProcess {
  readonly pid: number | undefined;
  /** The number of the loop that is lost alone, and started again in its process. */
  readonly loop?: number;
  readonly why: string;
  /** True: a signal from outside ended it, so nothing in it is to blame. */
  readonly isFromOutside: boolean;
}

/** Settings for a reload. */
export interface Renewal {
  readonly settings: ProcessSettings;
  /** Called when all processes have them. */
  readonly onApplied: () => void;
}

export class Supervisor {
  /** Resolves after `close`; rejects with `SERVE_FAILED` when processes end too often in a row. */
  readonly closed: Promise<void>;
  #settings: ProcessSettings;
  readonly #system: SupervisorSystem;
  readonly #sockets: Sockets;
  readonly #mesh: Mesh | undefined;
  readonly #predecessor: Predecessor | undefined;
  readonly #leadership = new Leadership();
  /** By number, including processes that drain. */
  readonly #processes: (ServerProcess | undefined)[];
  readonly #restarts: RestartOptions | undefined;
  readonly #onLost: SupervisorExtras['onLost'];
  readonly #policy: RestartPolicy;
  readonly #closed = defer<void>();
  readonly #sizer: Sizer;
  readonly #recycling: Recycling;
  readonly #liveness: Liveness<ServerProcess>;
  readonly #descriptors: Descriptors<ServerProcess>;
  /** Exit text of the last process, by number. */
  readonly #lastExits: (string | undefined)[] = [];
  #watchTimer: NodeJS.Timeout | undefined;
  #checkTimer: NodeJS.Timeout | undefined;
  #generation = 0;
  /** True: the processes of the start serve. */
  #hasStarted = false;
  #isClosing = false;
  /** Resolves when no successor starts. */
  #held: Promise<void> = Promise.resolve();
  /** True: a successor serves. */
  #hasLeft = false;
  /** Processes that serve by the last size that was reached. */
  #settled = 0;
  /** One reload or change of size at a time. */
  #change: Promise<void> = Promise.resolve();
  #changes = 0;
  /** Number of processes that will be started to replace lost ones. */
  #awaited = 0;
  #failedAtMs = 0;
  #lostProcesses = 0;
  #rungAtMs = 0;
  /** True: the last ring was late, so a sound process may not have answered it yet. */
  #wasRungLate = false;
  /** No process is recycled before, because the last one could not be replaced. */
  #recycleAfterMs = 0;

  /** Throws `NATIVE_MISSING` where an option needs the native core. */
  constructor(settings: ProcessSettings, extras: SupervisorExtras = {}) {
    const { mesh, predecessor, restarts, onLost, onStopped } = extras;
    const { app, options } = settings;
    this.closed = this.#closed.promise;
    this.closed.catch(() => {}); // for a caller that awaits it
    this.#settings = settings;
    this.#mesh = mesh;
    this.#predecessor = predecessor;
    this.#restarts = restarts;
    this.#onLost = onLost;
    this.#policy = new RestartPolicy(this.#restartsFor(options));
    this.#system = createSystem(settings, predecessor);
    const onBound = (address: BoundAddress): void => {
      if (this.#hasStarted) {
        const { name, path: app } = this.#app;
        announcements.serverListening.publish({ name, app, address });
      }
    };
    const chosen = predecessor?.portsOf(app.name);
    this.#sockets = new Sockets(this.#system.opener, onBound, chosen);
    this.#processes = new Array(this.#system.rows.length).fill(undefined);
    this.#liveness = new Liveness(this.#system, options, ({ pid }) => onStopped?.(pid));
    this.#descriptors = new Descriptors(this.#system);
    this.#recycling = new Recycling(options);
    this.#sizer = new Sizer(options);
  }

  #restartsFor({ maxFailures }: FilledServeOptions): RestartOptions {
    return this.#restarts ?? { ...restartDefaults, maxFailures };
  }

  get #changed(): ServerChangedMessage {
    const { name, path: app } = this.#app;
    return { name, app, pids: this.pids };
  }

  get #app(): AppSettings {
    return this.#settings.app;
  }

  get #options(): FilledServeOptions {
    return this.#settings.options;
  }

  /** Addresses of the server, in the order of its programs' `listen()` calls. */
  get addresses(): readonly BoundAddress[] {
    return this.#sockets.addresses;
  }

  get pids(): readonly number[] {
    return this.#serving.flatMap(({ pid, state }) => (state === 'ready' ? (pid ?? []) : []));
  }

  /** Number of processes that ended or lost a loop unrequested, or did not start. */
  get lostProcesses(): number {
    return this.#lostProcesses;
  }

  /** Reasons why the server should get no clients; none: it is ready. */
  get obstacles(): readonly string[] {
    if (this.#isClosing) return ['the server ends'];
    if (!this.#hasStarted) return ['the server starts'];
    const ready = this.#serving.filter(({ state }) => state === 'ready');
    const wanted = Math.min(this.#settled, this.#sizer.processes.min);
    const missing = ready.length < wanted ? [`${ready.length} of ${wanted} processes serve`] : [];
    const ofPrograms = ready.flatMap(({ number, obstacles }) =>
      obstacles.map((obstacle) => `process ${number}: ${obstacle}`),
    );
    return [...missing, ...ofPrograms];
  }

  /** Processes that serve or start. */
  get #serving(): ServerProcess[] {
    return this.#processes.filter(
      (each): each is ServerProcess => each?.state === 'ready' || each?.state === 'starting',
    );
  }

  /** A line for each loop of each process. */
  status(): LoopStatus[] {
    const nowMs = this.#system.nowMs();
    const all = this.#processes.filter((each) => each !== undefined);
    return all.flatMap(({ number, pid, generation, ageMs, state }) => {
      const rssBytes = rssBytesOf(pid);
      const lastExit = this.#lastExits[number];
      const ofProcess = { process: number, pid, generation, ageMs, rssBytes, lastExit };
      const lines = this.#rowsOf(number).map((row, loop) => ({
        ...ofProcess,
        ...rowStatus(row, nowMs, { loop, utilization: this.#sizer.utilization.of(row) ?? 0 }),
      }));
      const { min } = this.#options.loops;
      // A loop writes no state before its process has started, nor once it holds nothing any more.
      const unwritten = state === 'starting' || state === 'draining' ? state : 'free';
      return lines
        .filter((line) => line.loop < min || line.state !== 'free')
        .map((line) => (line.state === 'free' ? { ...line, state: unwritten } : line));
    });
  }

  #rowsOf(number: number): readonly Row[] {
    return this.#system.rows[number] ?? [];
  }

  /**
   * Resolves when all processes serve; else ends them all and rejects with the first failure, or with `SERVE_CLOSED`.
   * Reloads and changes of size wait for it.
   */
  start(): Promise<void> {
    return this.#inTurn(async () => {
      try {
        await this.#sockets.inherit(this.#options.listenFds);
        const started = Array.from({ length: this.#options.processes.min }, () => this.#startOne());
        await Promise.all(started.map(({ ready }) => ready));
        this.#settled = this.#options.processes.min;
        this.#hasStarted = true;
        this.#rungAtMs = performance.now();
        this.#watchTimer = setInterval(this.#watch, watchEveryMs).unref();
      } catch (error) {
        if (this.#isClosing) {
          await this.closed; // some may serve already
          throw serverClosed();
        }
        this.#isClosing = true;
        // Beside a predecessor clients are to notice nothing: one that is ready has some already.
        const hasClients = (each: ServerProcess): boolean =>
          this.#predecessor !== undefined && each.state === 'ready';
        await this.#endAll((each) => (hasClients(each) ? each.drain() : each.kill()));
        throw error;
      }
    });
  }

  /** Throws `SERVE_CLOSED`, `SERVE_START_FAILED`. */
  #startOne(queue = this.#freeQueue()): ServerProcess {
    if (this.#isClosing) throw serverClosed();
    const number = this.#processes.indexOf(undefined);
    if (number < 0) {
      throw new CodedError(
        'SERVE_START_FAILED',
        'the maximum number of processes is draining: wait until some have ended',
      );
    }
    for (const row of this.#rowsOf(number)) row.clear();
    const made: ServerProcess = new ServerProcess({
      number,
      queue,
      generation: this.#generation,
      app: this.#app,
      system: this.#system,
      sockets: this.#sockets,
      mesh: this.#mesh,
      restartsLoops: this.#mesh !== undefined,
      leadership: this.#leadership,
      serve: this.#options,
      inherited: this.#settings.inherited,
      events: {
        onLeave: () => {
          this.#sockets.leave(number);
          this.#spreadQueues();
        },
        onLost: (why, stack) => this.#lost(made, why, stack),
        onLoopFailed: (loop, { message, stack }) => {
          this.#sizer.loopFailed(made);
          announcements.serverLoopFailed.publish({ pid: made.pid, loop, why: message, stack });
        },
        onLoopLost: (loop, { message: why, stack }, delayMs) => {
          const { pid } = made;
          this.#onLost?.({ pid, loop, why, isFromOutside: false });
          announcements.serverLost.publish({ pid, loop, why, stack, delayMs });
        },
        onEnd: (how) => this.#ended(made, how),
      },
    });
    this.#processes[number] = made;
    made.ready.then(
      () => this.#spreadQueues(),
      () => this.#spreadQueues(), // clients may wait in its socket
    );
    return made;
  }

  #freeQueue(): number {
    const taken = new Set(this.#serving.map((each) => each.queue));
    let queue = 0;
    while (taken.has(queue)) queue += 1;
    return queue;
  }

  /** Assigns orphaned sockets to the processes with the fewest (`reuseport`). */
  #spreadQueues(): void {
    if (this.#isClosing) return;
    for (let queue = 0; queue < this.#sockets.queues; queue += 1) {
      const serving = this.#serving;
      if (serving.some(({ sockets }) => sockets.queues.has(queue))) continue;
      const ready = serving.filter(({ state }) => state === 'ready');
      const [fewest] = ready.sort((a, b) => a.sockets.queues.size - b.sockets.queues.size);
      fewest?.sockets.adopt(queue);
    }
  }

  /** Waits until a draining process has ended, when all numbers are taken. */
  async #waitForNumber(): Promise<void> {
    while (!this.#processes.includes(undefined)) {
      await Promise.race(this.#processes.map((each) => each?.exited));
    }
  }

  #ended({ number }: ServerProcess, how: string): void {
    this.#processes[number] = undefined;
    this.#lastExits[number] = how;
    this.#sockets.leave(number);
    for (const row of this.#rowsOf(number)) row.clear();
    this.ring(); // a connection may have been left to it
  }

  /** Once a second. */
  readonly #watch = (): void => {
    const nowMs = performance.now();
    this.#wasRungLate = nowMs - this.#rungAtMs > watchEveryMs + lateMs;
    this.#rungAtMs = nowMs;
    for (const each of this.#processes) if (each !== undefined) this.#system.ring(each.number);
    this.#checkTimer = setTimeout(this.#check, settleMs).unref();
  };

  readonly #check = (): void => {
    this.#sizer.utilization.sample(this.#system.rows.flat(), performance.now());
    this.#forgetFailures();
    this.#descriptors.check(this.#processes, performance.now());
    if (this.#wasRungLate || performance.now() - this.#rungAtMs > lateMs) return;
    this.#liveness.checkStopped(this.#processes);
    for (const { process, loop, ms } of this.#liveness.reportBlocked(this.#processes)) {
      this.#retire(process, loop, ms);
    }
    this.#system.workers?.checkMemory();
    if (this.#changes > 0) return; // a reload goes on
    this.#releaseSockets();
    const due =
      performance.now() < this.#recycleAfterMs
        ? undefined
        : this.#serving.find((each) =>
            this.#recycling.shouldRecycle(each, this.#rowsOf(each.number)),
          );
    if (due !== undefined) this.#recycle(due);
    else if (this.#options.plan === 'perchild') this.#fitLoops();
    else this.#fitProcesses();
  };

  /** Programs close servers, and new versions of them listen elsewhere. */
  #releaseSockets(): void {
    const isSettled = this.#awaited === 0 && this.#serving.length > 0;
    if (!isSettled) return; // a starting process may need them
    for (const number of this.#sockets.numbers) {
      if (this.#serving.some((each) => each.mayUse(number))) continue;
      this.#sockets.release(number);
      for (const each of this.#serving) each.sockets.forget(number); // it is used again
    }
  }

  #recycle(old: ServerProcess): void {
    const replace = async (): Promise<void> => {
      await this.#waitForNumber();
      await this.#startOne(old.queue).ready;
      old.drain();
    };
    this.#inTurn(replace).catch(() => {
      this.#recycleAfterMs = performance.now() + recycleRestMs; // it serves on until then
    });
  }

  /** Processes come and go with the load. */
  #fitProcesses(): void {
    const serving = this.#serving;
    const rows = serving.flatMap(({ number }) => this.#rowsOf(number));
    const { waitingConnections } = this.#sockets;
    const units = serving.length + this.#awaited;
    const change = this.#sizer.changeOfProcesses(units, rows, waitingConnections);
    const free = this.#processes.filter((each) => each === undefined).length;
    for (let count = 0; count < Math.min(change, free); count += 1) this.#startWatched();
    if (change < 0) this.#leastConnected(serving)?.drain();
  }

  /** Loops of each process come and go with its load. */
  #fitLoops(): void {
    for (const each of this.#serving.filter(({ state }) => state === 'ready')) {
      const loops = this.#sizer.loopsFor(each, this.#rowsOf(each.number));
      if (loops !== undefined) each.resize(loops);
    }
  }

  #leastConnected(processes: readonly ServerProcess[]): ServerProcess | undefined {
    const open = ({ number }: ServerProcess) =>
      this.#rowsOf(number).reduce(
        (sum, row) => sum + row.get(boardAt.open) + row.get(boardAt.filesOpen),
        0,
      );
    return [...processes].sort((a, b) => open(a) - open(b))[0];
  }

  /** Replaces a process: its other loops finish their requests, while another process starts; with a mesh it ends. */
  #retire(process: ServerProcess, loop: number, blockedMs: number): void {
    const { drainTimeoutMs } = this.#options;
    const what = `loop ${loop} was blocked for ${blockedMs} ms`;
    // Loops of units have peers, which wait for what a blocked one holds.
    if (this.#mesh !== undefined) {
      this.#lost(process, what);
      process.endBlocked();
      return;
    }
    process.drain();
    this.#lost(process, `${what}; its process drains for up to ${drainTimeoutMs} ms`);
  }

  #lost({ pid, number, isEndedFromOutside }: ServerProcess, why: string, stack?: string): void {
    if (this.#isClosing) return;
    this.#onLost?.({ pid, why, isFromOutside: isEndedFromOutside });
    // A request that makes it fail must not be able to close the server.
    const hasServed = this.#rowsOf(number).some((row) => row.get(boardAt.placed) > 0);
    this.#replaceLater(pid, { why, stack, hasServed });
  }

  /** Starts another process after a delay; gives up after too many failures in a row while none serves. */
  #replaceLater(
    pid: number | undefined,
    { why, stack, hasServed }: { why: string; stack?: string | undefined; hasServed: boolean },
  ): void {
    this.#failedAtMs = performance.now();
    this.#lostProcesses += 1;
    // While other processes serve well, a failure must not end them.
    const isAnySound = hasServed || this.#serving.some(({ servedMs }) => servedMs > soundMs);
    const delayMs = this.#policy.failed() ?? (isAnySound ? maxDelayMs : undefined);
    announcements.serverLost.publish({ pid, why, stack, delayMs });
    if (delayMs === undefined) {
      this.#giveUp(why);
      return;
    }
    this.#awaited += 1;
    setTimeout(() => void this.#replace(), delayMs);
  }

  /** Ends the row of failures once a process that started after the last one serves well. */
  #forgetFailures(): void {
    const sinceMs = performance.now() - this.#failedAtMs;
    const isMended = this.#serving.some(
      ({ servedMs, ageMs }) => servedMs > soundMs && ageMs < sinceMs,
    );
    if (isMended) this.#policy.succeeded();
  }

  async #replace(): Promise<void> {
    await this.#waitForNumber();
    this.#awaited -= 1;
    const isNeeded = this.#serving.length < this.#sizer.maxProcesses;
    if (isNeeded && !this.#isClosing) this.#startWatched();
  }

  /** Starts a process; when it fails, another one later. */
  #startWatched(): void {
    const failed = (error: unknown, made?: ServerProcess): void => {
      const isExpected = this.#isClosing || made?.isUnwanted;
      if (isExpected) return;
      const isFromOutside = made?.isEndedFromOutside === true;
      this.#onLost?.({ pid: made?.pid, why: messageOf(error), isFromOutside });
      this.#replaceLater(made?.pid, { why: messageOf(error), hasServed: false });
    };
    try {
      const made = this.#startOne();
      made.ready.catch((error: unknown) => failed(error, made));
    } catch (error) {
      failed(error);
    }
  }

  #giveUp(why: string): void {
    const { failuresInRow } = this.#policy;
    const message =
      `processes of the server ended ${failuresInRow} times in a row, the last one: ${why}. ` +
      'The server is closed: fix the program and start it again';
    this.#closed.reject(new CodedError('SERVE_FAILED', message));
    this.close().catch(() => {});
  }

  /**
   * Replaces every process, one after the other; rejects when a new one fails: the old one stays. Clients
   * that connect afterwards get a new process. `renew` returns settings for the new ones; where it rejects, or a
   * process fails, all that are started later have the old settings.
   */
  reload(renew?: () => Promise<Renewal>): Promise<void> {
    return this.#inTurn(async () => {
      const before = this.#settings;
      const range = this.#sizer.processes;
      const next = await renew?.();
      if (this.#isClosing) throw serverClosed();
      if (next !== undefined) {
        this.#use(next.settings);
        // A size that was set by `scale` stays until the options have another one.
        const wanted = next.settings.options.processes;
        if (!isDeepStrictEqual(wanted, before.options.processes)) this.#sizer.processes = wanted;
      }
      try {
        await this.#replaceAll(range);
      } catch (error) {
        this.#sizer.processes = range;
        this.#use(before);
        throw error;
      }
      const { options, inherited } = this.#settings;
      this.#system.workers?.renew({ ...options, inherited });
      next?.onApplied();
      announcements.serverReloaded.publish(this.#changed);
    });
  }

  /** Takes settings for processes that are started from now on. */
  #use(settings: ProcessSettings): void {
    const { options } = settings;
    this.#settings = settings;
    this.#policy.renew(this.#restartsFor(options));
    this.#liveness.renew(options);
    this.#recycling.renew(options);
    this.#sizer.renew(options);
  }

  /** Replaces all processes by as many as there are to be; `before` is the range until now. */
  async #replaceAll(before: Range): Promise<void> {
    const old = this.#serving;
    const range = this.#sizer.processes;
    const isOtherSize = !isDeepStrictEqual(range, before);
    const max = isOtherSize ? range.max : Infinity;
    this.#generation += 1;
    for (const [replaced, each] of old.entries()) {
      if (each.state === 'draining' || each.state === 'ended') continue; // it is being replaced
      if (replaced < max) {
        await this.#waitForNumber();
        await this.#startOne(each.queue).ready.catch((error: unknown) => {
          throw reloadFailed(error, replaced, old.length);
        });
      }
      each.drain();
    }
    if (isOtherSize) {
      await this.#startMissing(range.min).catch((error: unknown) => {
        throw reloadFailed(error, old.length, range.min);
      });
    }
    await Promise.all(old.map(({ left }) => left));
  }

  /** Changes the number of processes; resolves when the new ones serve. */
  scale(processes: Range): Promise<void> {
    return this.#inTurn(async () => {
      const before = this.#sizer.processes;
      this.#sizer.processes = processes;
      const serving = this.#serving;
      const ready = serving.filter(({ state }) => state === 'ready');
      const starting = serving.filter(({ state }) => state === 'starting');
      for (const each of [...ready, ...starting].slice(processes.max)) each.drain();
      try {
        await this.#startMissing(processes.min);
      } catch (error) {
        this.#sizer.processes = before;
        throw error;
      }
      announcements.serverScaled.publish(this.#changed);
    });
  }

  /**
   * Waits for reloads and changes of size; none begins until the result is called. Rejects with `SERVE_CLOSED`.
   */
  hold(): Promise<() => void> {
    const { promise: isFree, resolve: free } = defer<void>();
    return new Promise((resolve, reject) => {
      const work = async (): Promise<void> => {
        this.#held = isFree;
        resolve(free);
        await isFree;
      };
      this.#inTurn(work).catch(reject);
    });
  }

  /** Resolves when no successor starts. Rejects with `SERVE_CLOSED` when one serves in its place. */
  async released(): Promise<void> {
    await this.#held;
    if (this.#hasLeft) throw new CodedError('SERVE_CLOSED', 'a successor serves in its place');
  }

  /** Sockets for a successor; they stay this server's. Throws `SERVE_UPGRADE_FAILED`. */
  handOut(): HandedSocket[] {
    return this.#sockets.handOut();
  }

  /** See `Sockets.chosen`. */
  get chosenPorts(): ReadonlyMap<string, number> {
    return this.#sockets.chosen;
  }

  /** Ends like `close`, for a successor that has the sockets. `onLeft`: nothing here accepts any more. */
  leave(onLeft: () => void): Promise<void> {
    this.#hasLeft = true;
    this.#sockets.keepPaths();
    const handedOver = this.#sockets.handOver(); // first, so that draining processes get nothing new
    const all = this.#processes.filter((each) => each !== undefined);
    const left = Promise.all([handedOver, ...all.map((each) => each.left)]).then(onLeft);
    return Promise.all([this.#close(true), left]).then(() => {});
  }

  /** A connection may have been left to these processes of which they get no notice. */
  ring(): void {
    if (this.#isClosing) return;
    for (const number of this.#processes.keys()) this.#system.ring(number);
  }

  /** Resolves when at least `min` processes serve. */
  async #startMissing(min: number): Promise<void> {
    const missing = Math.max(0, min - this.#serving.length - this.#awaited);
    const started: ServerProcess[] = [];
    for (let count = 0; count < missing; count += 1) {
      await this.#waitForNumber();
      started.push(this.#startOne());
    }
    await Promise.all(started.map(({ ready }) => ready));
    this.#settled = min;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const begin = async (): Promise<void> => {
      if (this.#isClosing) throw serverClosed();
      await work();
    };
    this.#changes += 1;
    const done = this.#change.then(begin).finally(() => {
      this.#changes -= 1;
    });
    this.#change = done.catch(() => {});
    return done;
  }

  /** Finishes open requests, and ends every process. */
  close(): Promise<void> {
    return this.#close(false);
  }

  #close(isReplaced: boolean): Promise<void> {
    this.#isClosing = true;
    return this.#endAll((each) => each.drain(isReplaced));
  }

  async #endAll(end: (process: ServerProcess) => void): Promise<void> {
    clearInterval(this.#watchTimer);
    clearTimeout(this.#checkTimer);
    const all = this.#processes.filter((each) => each !== undefined);
    for (const each of all) end(each);
    this.#sockets.close(); // new clients are refused at once
    await Promise.all(all.map(({ exited }) => exited));
    await this.#system.close();
    this.#closed.resolve();
  }
}
