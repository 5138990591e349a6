// The supervisor's handle of one process of the server: starts it with its ticket, answers the requests of its
// loops, ends it by a drain and, when that takes too long, by a signal. Not here: when (supervisor.ts).
// Long (over 400 lines), because every message of a process, and its end, may change its one state.

import { CodedError, hasCode } from '../../errors.js';
import { defer, Lifecycle, messageOf } from '../../lib/index.js';
import { readOutput } from '../output/read-output.js';
import type { StackWatch } from '../process/stack-watch.js';
import {
  type ArrivedEnvelope,
  type Envelope,
  type FromProcess,
  type ListenQuery,
  type LoopRequest,
  parseFromLoop,
  parseFromProcess,
  returned,
  type ToLoop,
  type ToProcess,
  type TravelledError,
} from '../protocol.js';
import { closeFds } from '../shared/dup-fds.js';
import type { Link, LinkListener } from '../shared/link.js';
import type { Leadership } from './leadership.js';
import { type ListenProblem, listenProblem } from './listen-problem.js';
import type { Mesh } from './mesh.js';
import { ProcessSockets } from './process-sockets.js';
import type { Workers } from './shared-workers.js';
import type { Sockets } from './sockets.js';
import type { Started, StartOptions, SupervisorSystem } from './system.js';

/** Time for the program's exit handlers after the deadline of a drain, in ms. */
const killAfterMs = 6000;
/** Time in which a process that serves nobody yet can end by itself, in ms. */
const endStartMs = 1000;
/** Time for loops of units beside a blocked one, in ms. */
const endOthersMs = 1000;
/** Maximum wait for a stack, in ms. */
const stackTimeoutMs = 3000;

export interface ServerProcessOptions extends Omit<StartOptions, 'listener' | 'onStack'> {
  readonly system: SupervisorSystem;
  readonly sockets: Sockets;
  readonly leadership: Leadership;
  /** Set for servers whose loops have channels to each other. */
  readonly mesh: Mesh | undefined;
  readonly events: ServerProcessEvents;
}

export interface ServerProcessEvents {
  /** Called once, when it begins to drain or has ended. */
  onLeave(): void;
  /** Called once, when it served and then ended, or lost a loop, unrequested. */
  onLost(why: string, stack?: string): void;
  /** Called when a loop that was added has failed to listen. */
  onLoopFailed(index: number, error: TravelledError): void;
  /** Called when a loop has ended unrequested, and is started again in its process. */
  onLoopLost(index: number, error: TravelledError, delayMs: number): void;
  /** Called once, at its end, with the reason. */
  onEnd(how: string): void;
}

interface ProcessExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

type State = 'starting' | 'ready' | 'draining' | 'ended';

/** Signals by which a program seldom ends itself: whoever sent one is to blame, not its code. */
const outsideSignals: ReadonlySet<string> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']);

/** Time for a program to retry after a `listen()` that failed, in ms. */
const refusedListenMs = 5000;

export class ServerProcess implements Link<ToLoop | ToProcess> {
  readonly number: number;
  /** The sockets that it accepts from. */
  readonly sockets: ProcessSockets;
  readonly generation: number;
  /** Number of its own sockets among those that share a port; a replacement takes it over. */
  readonly queue: number;
  /** True: its end was requested, and is no failure, even if it never served. */
  isUnwanted = false;
  /** True: it has ended by a signal that neither its code nor a deadline here has caused. */
  isEndedFromOutside = false;
  /** Resolves when all its loops listen; rejects with `SERVE_START_FAILED`. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  /** Resolves when it takes no more connections. */
  readonly left: Promise<void>;
  readonly #child: Started['child'];
  readonly #link: Link<ToLoop | ToProcess>;
  /** Set when the program runs in the main thread. */
  readonly #stackWatch: StackWatch | undefined;
  readonly #workers: Workers | undefined;
  readonly #mesh: Mesh | undefined;
  readonly #leadership: Leadership;
  readonly #events: ServerProcessEvents;
  /** Reasons why programs are not ready for clients, by loop. */
  readonly #obstacles = new Map<number, string>();
  /** Pending stack requests, by loop. */
  readonly #stacks = new Map<number, (stack: string | undefined) => void>();
  readonly #started = defer<void>();
  readonly #ended = defer<void>();
  readonly #left = defer<void>();
  readonly #life: Lifecycle<State>;
  #startTimer: NodeJS.Timeout | undefined;
  readonly #onAccess: ((lines: string) => void) | undefined;
  /** True: what it prints is read here. */
  readonly #isRead: boolean;
  readonly #drainTimeoutMs: number;
  readonly #startTimeoutMs: number;
  readonly #loopCount: number;
  readonly #path: string;
  /** Error of the program's last `listen()`. */
  #listenProblem: ListenProblem | undefined;
  /** Reason of a drain that the supervisor has not requested. */
  #leftBecause: string | undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #killedBecause: string | undefined;
  #isKilled = false;
  readonly #startedAtMs = performance.now();
  #readyAtMs: number | undefined;

  constructor(options: ServerProcessOptions) {
    this.number = options.number;
    this.generation = options.generation;
    this.queue = options.queue;
    this.#workers = options.system.workers;
    this.#mesh = options.mesh;
    this.#leadership = options.leadership;
    this.#events = options.events;
    this.#onAccess = options.serve.accessLog?.onLines;
    this.#isRead = options.serve.onOutput !== undefined;
    this.#drainTimeoutMs = options.serve.drainTimeoutMs;
    this.#startTimeoutMs = options.serve.startTimeoutMs;
    this.#loopCount = options.serve.loops.max;
    this.#life = new Lifecycle(`process ${options.number}`, 'starting', {
      starting: ['ready', 'draining', 'ended'],
      ready: ['draining', 'ended'],
      draining: ['ended'],
      ended: [],
    });
    this.ready = this.#started.promise;
    this.ready.catch(() => {}); // the supervisor handles it; other callers need not
    this.exited = this.#ended.promise;
    this.left = this.#left.promise;
    const listener: LinkListener = {
      onEnvelope: (envelope) => this.#receive(envelope),
      onError: (error, envelope) => this.#refused(error, envelope),
      onClose: (error) => {
        if (error !== undefined) this.kill(messageOf(error));
      },
    };
    const onStack = (stack: string | undefined): void => this.#stackTaken(0, stack);
    const { number, queue, generation, app, serve, inherited, restartsLoops } = options;
    const place = { number, queue, generation };
    const given = { app, serve, inherited, restartsLoops };
    const started = options.system.start({ ...place, ...given, listener, onStack });
    const { child, link, stackWatch } = started;
    this.#child = child;
    this.#link = link;
    // With sticky clients a queue is for the loops of one process, and is not taken over.
    const socketQueue = serve.sticky === undefined ? queue : number;
    this.sockets = new ProcessSockets(options.sockets, socketQueue, link, () =>
      this.#life.is('starting', 'ready'),
    );
    this.#stackWatch = stackWatch;
    child.once('error', (error) => this.#end({ exitCode: null, signal: null }, error));
    child.once('exit', (exitCode, signal) => {
      const end = (): void => this.#end({ exitCode, signal }, undefined);
      // Messages over Node's channel, if there is one, come first.
      if (child.connected) child.once('disconnect', end);
      else end();
    });
    this.#path = options.app.path;
    if (serve.onOutput !== undefined) {
      const onlyLoop = serve.loops.max === 1 ? 0 : undefined;
      readOutput(child, { name: app.name, process: number, onlyLoop }, serve.onOutput);
    }
    this.#limitStart(this.#startTimeoutMs);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Since it was started, in ms. */
  get ageMs(): number {
    return performance.now() - this.#startedAtMs;
  }

  /** Since all its loops listened, in ms; 0 before. */
  get servedMs(): number {
    return this.#readyAtMs === undefined ? 0 : performance.now() - this.#readyAtMs;
  }

  /** Reasons why its programs are not ready for clients, each once. */
  get obstacles(): readonly string[] {
    return [...new Set(this.#obstacles.values())];
  }

  get state(): State {
    return this.#life.state;
  }

  /**
   * Returns a message of a loop whose descriptors cannot be taken or passed on. Kills the process for an
   * invalid message, which any program may send: the server goes on.
   */
  #refused(error: unknown, envelope: ArrivedEnvelope | undefined): void {
    if (envelope?.loop === undefined || !hasCode(error, 'NATIVE_REFUSED')) {
      this.kill(messageOf(error));
    } else this.post({ ...envelope, body: returned(envelope, error), fds: [] });
  }

  #receive(envelope: ArrivedEnvelope): void {
    const { loop, fds } = envelope;
    try {
      if (this.#life.is('ended')) return;
      if (loop === undefined) this.#receiveOwn(parseFromProcess(envelope));
      else this.#receiveFromLoop(loop, parseFromLoop(envelope));
    } finally {
      closeFds(fds); // who keeps one has a duplicate
    }
  }

  #receiveFromLoop(loop: number, message: LoopRequest): void {
    switch (message.type) {
      case 'listen':
        void this.#listen(loop, message.id, message.query);
        break;
      case 'unlisten':
        this.sockets.unlisten(loop, message.number);
        break;
      case 'acquire':
        this.#acquire(loop, message.id, message.fds);
        break;
      case 'release':
        this.#workers?.release({ process: this, loop }, message.id);
        break;
      case 'stand':
        this.#leadership.stand(this, loop);
        break;
      case 'resign':
        this.#leadership.leave(this, loop);
        break;
      case 'access':
        process.nextTick(() => this.#onAccess?.(message.lines)); // an error of it is the program's
        break;
      case 'readiness':
        if (message.obstacle === undefined) this.#obstacles.delete(loop);
        else this.#obstacles.set(loop, message.obstacle);
        break;
      case 'join':
        this.#mesh?.join(this, loop);
        break;
      case 'offer':
      case 'offerAt':
        this.#mesh?.offer(this, loop, message);
        break;
    }
  }

  #receiveOwn(message: FromProcess): void {
    switch (message.type) {
      case 'ready':
        if (this.#life.is('draining')) this.#killAfter(this.#drainTimeoutMs + killAfterMs); // it may have clients
        if (!this.#life.tryTransition('ready')) break;
        clearTimeout(this.#startTimer);
        this.#readyAtMs = performance.now();
        this.#started.resolve();
        this.#leadership.elect();
        break;
      case 'failed':
        this.#failed(message.error);
        break;
      case 'stack':
        this.#stackTaken(message.index, message.stack);
        break;
      case 'loopFailed':
        this.#events.onLoopFailed(message.index, this.#unprinted(message.error));
        break;
      case 'loopLost':
        if (this.#life.is('starting', 'ready'))
          this.#events.onLoopLost(message.index, this.#unprinted(message.error), message.delayMs);
        break;
      case 'loopEnded':
        this.sockets.unlisten(message.ended);
        this.#obstacles.delete(message.ended);
        this.#loopsEnded(message.ended);
        break;
      case 'leaving':
        this.#leaving();
        break;
    }
  }

  /** Cleans up after one loop, or all. */
  #loopsEnded(loop?: number): void {
    const workersEnded = this.#workers?.tenantEnded(this, loop) ?? Promise.resolve();
    this.#mesh?.ended(this, loop, workersEnded);
    this.#leadership.leave(this, loop);
  }

  #acquire(loop: number, id: number, fds: readonly number[]): void {
    this.#workers?.acquire({ process: this, loop }, id, fds, {
      onGranted: (lease) => this.post({ loop, id, body: { type: 'granted', lease } }),
      onEnded: ({ exitCode, signal, error }) => {
        const body: ToLoop = { type: 'leaseEnded', exitCode, signal, message: error?.message };
        this.post({ loop, id, body });
      },
    });
  }

  /** True: `ProcessSockets.mayUse` is. */
  mayUse(number: number): boolean {
    return this.sockets.mayUse(number, this.servedMs > this.#startTimeoutMs);
  }

  async #listen(loop: number, id: number, query: ListenQuery): Promise<void> {
    const answer = await this.sockets.listen(loop, id, query);
    this.#listenProblem = 'errno' in answer ? listenProblem(query, answer) : undefined;
    if (!this.#life.is('starting')) return;
    // A program may try another port, or retry this one; some do neither, silently.
    this.#limitStart(this.sockets.isEmpty ? refusedListenMs : this.#startTimeoutMs);
  }

  /** Handles that it takes no more connections, requested or not: it may have got a signal. */
  #leaving(): void {
    this.#left.resolve();
    this.#drainsByItself('it received a signal to end');
  }

  /** Returns false when the process does not serve. */
  #drainsByItself(why: string, stack?: string): boolean {
    if (!this.#life.is('ready')) return false;
    this.#life.transition('draining');
    this.#leftBecause = why;
    this.#events.onLeave();
    this.#killAfter(this.#drainTimeoutMs + killAfterMs);
    this.#events.onLost(why, stack);
    return true;
  }

  /** Returns an error without its stack where that is among the lines of the process. */
  #unprinted(error: TravelledError): TravelledError {
    return this.#isRead ? { ...error, stack: undefined } : error;
  }

  #failed(error: TravelledError): void {
    const { message, code, stack } = error;
    if (this.#drainsByItself(message, this.#unprinted(error).stack)) return;
    const problem = this.#listenProblem;
    const isProblem = problem?.code === code && /^(bind|listen) /.test(message);
    if (problem !== undefined && isProblem) {
      this.#refuseStart(`${this.#path} cannot listen: ${problem.text}`);
    } else {
      const cause = Object.assign(new Error(message), { code, stack });
      this.#refuseStart(`the program failed: ${message}`, cause);
    }
    this.kill();
  }

  /** Limits the start to `ms` from now on, and in all to the start timeout. */
  #limitStart(ms: number): void {
    clearTimeout(this.#startTimer);
    const leftMs = Math.min(ms, this.#startTimeoutMs - this.ageMs);
    this.#startTimer = setTimeout(() => this.#startTimedOut(), leftMs);
  }

  #startTimedOut(): void {
    this.#refuseStart(
      this.#listenProblem !== undefined
        ? `${this.#path} does not listen: ${this.#listenProblem.text}`
        : `${this.#path} has not listened within ${this.#startTimeoutMs} ms, and exports nothing that ` +
            'could: let it call listen(), or export a request listener, a server, an app or a fetch handler',
    );
    this.kill();
  }

  #refuseStart(message: string, cause?: unknown): void {
    clearTimeout(this.#startTimer);
    if (this.#life.is('starting')) this.#life.transition('draining'); // it will not serve
    this.#started.reject(new CodedError('SERVE_START_FAILED', message, { cause }));
  }

  #end(exit: ProcessExit, error: Error | undefined): void {
    const wasServing = this.#life.is('ready');
    if (!this.#life.tryTransition('ended')) return;
    this.#stackWatch?.close();
    clearTimeout(this.#killTimer);
    // A kill with a reason is one of a process that was stopped (SIGSTOP).
    const isDeadline = this.#isKilled && this.#killedBecause === undefined;
    this.isEndedFromOutside = !isDeadline && outsideSignals.has(exit.signal ?? '');
    const ended = error === undefined ? describe(exit) : messageOf(error);
    const how = this.#killedBecause ?? this.#leftBecause ?? ended;
    const what =
      this.pid === undefined
        ? 'the system started no process for the server'
        : 'a process of the server ended before it listened';
    const after = this.#listenProblem === undefined ? '' : ` after ${this.#listenProblem.text}`;
    this.#refuseStart(`${what}: ${how}${after}`, error);
    this.#loopsEnded();
    if (wasServing) this.#events.onLeave();
    if (wasServing) this.#events.onLost(how);
    this.#events.onEnd(how);
    this.#left.resolve();
    this.#ended.resolve();
  }

  /**
   * Requests it to finish its requests; it is killed when that takes too long. Where nothing serves in its place
   * (`isReplaced` is false), a request in transit over an idle connection is not waited for.
   */
  drain(isReplaced = true): void {
    const hasClients = this.#life.is('ready');
    const deadlineMs = this.#drainTimeoutMs;
    if (!this.#life.tryTransition('draining')) {
      if (!isReplaced && this.#life.is('draining')) {
        this.post({ body: { type: 'drain', deadlineMs, isReplaced } });
      }
      return;
    }
    this.isUnwanted = true;
    clearTimeout(this.#startTimer);
    this.post({ body: { type: 'drain', deadlineMs, isReplaced } });
    this.#events.onLeave();
    this.#killAfter(hasClients ? deadlineMs + killAfterMs : endStartMs);
  }

  /**
   * Ends it, because a loop of it is blocked for too long: what that loop holds would not be finished. Its other
   * loops have a moment to end.
   */
  endBlocked(): void {
    this.drain();
    if (this.#loopCount > 1) this.#killAfter(endOthersMs);
    else this.kill();
  }

  /** Changes the number of its loops. */
  resize(loops: number): void {
    this.post({ body: { type: 'resize', loops, deadlineMs: this.#drainTimeoutMs } });
  }

  #killAfter(ms: number): void {
    clearTimeout(this.#killTimer);
    this.#killTimer = setTimeout(() => this.kill(), ms);
  }

  /** The stack of a blocked loop; `undefined` when it cannot be taken. */
  stackOf(index: number): Promise<string | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#stackTaken(index, undefined), stackTimeoutMs);
      this.#stacks.set(index, (stack) => {
        clearTimeout(timer); // the next request has a timer of its own
        resolve(stack);
      });
      if (this.#stackWatch === undefined) this.post({ body: { type: 'takeStack', index } });
      else this.#stackWatch.request();
    });
  }

  #stackTaken(index: number, stack: string | undefined): void {
    this.#stacks.get(index)?.(stack);
    this.#stacks.delete(index);
  }

  post(envelope: Envelope<ToLoop | ToProcess>): void {
    if (this.#life.is('ended')) closeFds(envelope.fds ?? []);
    else this.#link.post(envelope);
  }

  /** `why` is reported instead of the signal. */
  kill(why?: string): void {
    this.#killedBecause = why;
    this.#isKilled = true;
    this.#child.kill('SIGKILL');
  }
}

function describe({ exitCode, signal }: ProcessExit): string {
  return signal === null ? `exit code ${exitCode}` : `killed by ${signal}`;
}
