// The supervisor's handle of one process of the server: starts it with its ticket, exchanges messages over
// a wire, ends it by a drain and, when that takes too long, by a signal. Not here: when (supervisor.ts).
// Long (over 400 lines), because every message of a process, and its end, may change its one state.

import type { WireListener } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { defer, Lifecycle, messageOf } from '../../lib/index.js';
import type { WiredProcess, WorkerExit } from '../../worker/index.js';
import type { StackWatch } from '../process/stack-watch.js';
import {
  type FromProcess,
  type ListenQuery,
  parseFromProcess,
  type ToProcess,
  type TravelledError,
} from '../protocol.js';
import { type ListenProblem, listenProblem } from './listen-problem.js';
import type { MemberProcess, Mesh } from './mesh.js';
import type { Workers } from './shared-workers.js';
import type { Sockets } from './sockets.js';
import { type StartOptions, startProcess } from './start-process.js';

/** Time for the program's exit handlers after the deadline of a drain, in ms. */
const killAfterMs = 6000;
/** Maximum wait for a stack, in ms. */
const stackTimeoutMs = 3000;

export interface ServerProcessOptions extends Omit<StartOptions, 'wire' | 'onStack'> {
  /** Number of its own sockets among those that share a port (`Sockets.fdOf`). */
  readonly queue: number;
  readonly generation: number;
  readonly sockets: Sockets;
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
  /** Called once, at its end, with the reason. */
  onEnd(how: string): void;
}

interface ProcessExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

type State = 'starting' | 'ready' | 'draining' | 'ended';

/** Time for a program to retry after a `listen()` that failed, in ms. */
const refusedListenMs = 5000;

export class ServerProcess implements MemberProcess {
  readonly number: number;
  readonly queue: number;
  /** Numbers of the sockets that it accepts from: its own, and adopted ones. */
  readonly queues: Set<number>;
  readonly generation: number;
  /** True: its end was requested, and is no failure, even if it never served. */
  isUnwanted = false;
  /** Resolves when all its loops listen; rejects with `SERVE_START_FAILED`. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  /** Resolves when it takes no more connections. */
  readonly left: Promise<void>;
  readonly #process: WiredProcess<ToProcess>;
  /** Set when the program runs in the main thread. */
  readonly #stackWatch: StackWatch | undefined;
  readonly #sockets: Sockets;
  readonly #workers: Workers;
  readonly #mesh: Mesh | undefined;
  readonly #events: ServerProcessEvents;
  /** Numbers of the sockets that it has, and of those that its program has closed. */
  readonly #sent = new Set<number>();
  readonly #closed = new Set<number>();
  /** Pending stack requests, by loop. */
  readonly #stacks = new Map<number, (stack: string | undefined) => void>();
  readonly #started = defer<void>();
  readonly #ended = defer<void>();
  readonly #left = defer<void>();
  readonly #life: Lifecycle<State>;
  #startTimer: NodeJS.Timeout | undefined;
  readonly #drainTimeoutMs: number;
  readonly #startTimeoutMs: number;
  readonly #path: string;
  /** Error of the program's last `listen()`. */
  #listenProblem: ListenProblem | undefined;
  /** Reason of a drain that the supervisor has not requested. */
  #leftBecause: string | undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #killedBecause: string | undefined;
  readonly #startedAtMs = performance.now();
  #readyAtMs: number | undefined;

  constructor(options: ServerProcessOptions) {
    this.number = options.number;
    this.queue = options.queue;
    this.queues = new Set([options.queue]);
    this.generation = options.generation;
    this.#sockets = options.sockets;
    this.#workers = options.workers;
    this.#mesh = options.mesh;
    this.#events = options.events;
    this.#drainTimeoutMs = options.serve.drainTimeoutMs;
    this.#startTimeoutMs = options.serve.startTimeoutMs;
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
    const wire: WireListener = {
      onMessage: (message) => this.#receiveSafely(message),
      onClose: (error) => {
        if (error !== undefined) this.kill(messageOf(error));
      },
    };
    const onStack = (stack: string | undefined): void => this.#stackTaken(0, stack);
    const { process: started, stackWatch } = startProcess({ ...options, wire, onStack });
    this.#process = started;
    this.#stackWatch = stackWatch;
    const { child } = started;
    child.once('error', (error) => this.#end({ exitCode: null, signal: null }, error));
    child.once('exit', (exitCode, signal) => this.#end({ exitCode, signal }, undefined));
    this.#path = options.app.path;
    this.#limitStart(this.#startTimeoutMs);
  }

  get pid(): number | undefined {
    return this.#process.child.pid;
  }

  /** Since it was started, in ms. */
  get ageMs(): number {
    return performance.now() - this.#startedAtMs;
  }

  /** Since all its loops listened, in ms; 0 before. */
  get servedMs(): number {
    return this.#readyAtMs === undefined ? 0 : performance.now() - this.#readyAtMs;
  }

  get state(): State {
    return this.#life.state;
  }

  /** Kills the process for an invalid message, which any program may send: the server goes on. */
  #receiveSafely(message: unknown): void {
    if (this.#life.is('ended')) return;
    try {
      this.#receive(parseFromProcess(message));
    } catch (error) {
      this.kill(messageOf(error));
    }
  }

  #receive(message: FromProcess): void {
    switch (message.type) {
      case 'listen':
        void this.#listen(message.request, message.query);
        break;
      case 'ready':
        if (!this.#life.tryTransition('ready')) break;
        clearTimeout(this.#startTimer);
        this.#readyAtMs = performance.now();
        this.#started.resolve();
        break;
      case 'failed':
        this.#failed(message.error);
        break;
      case 'stack':
        this.#stackTaken(message.index, message.stack);
        break;
      case 'acquire':
        this.#acquire(message.loop, message.request);
        break;
      case 'release':
        this.#workers.release(this, message.request);
        break;
      case 'join':
        this.#mesh?.join(this, message.loop);
        break;
      case 'offer':
        this.#process.receiveDescriptors((fds) =>
          this.#mesh?.offer(this, message.loop, message.to, fds),
        );
        break;
      case 'unlisten':
        this.#sent.delete(message.number);
        this.#closed.add(message.number);
        break;
      case 'loopFailed':
        this.#events.onLoopFailed(message.index, message.error);
        break;
      case 'loopEnded':
        this.#loopsEnded(message.loop);
        break;
      case 'leaving':
        this.#leaving();
        break;
      case 'drained':
        break; // its end will follow
    }
  }

  /** Cleans up after one loop, or all. */
  #loopsEnded(loop?: number): void {
    const workersEnded = this.#workers.tenantEnded(this, loop);
    this.#mesh?.ended(this, loop, workersEnded);
  }

  /** The descriptors came ahead of the message. */
  #acquire(loop: number, request: number): void {
    const onEnded = ({ exitCode, signal, error }: WorkerExit): void => {
      const message = error?.message;
      this.#post({ type: 'leaseEnded', request, exitCode, signal, message });
    };
    try {
      this.#process.receiveDescriptors((fds) =>
        this.#workers.acquire({ process: this, loop }, request, fds, {
          onGranted: (lease) => this.#post({ type: 'granted', request, lease }),
          onEnded,
        }),
      );
    } catch (thrown) {
      onEnded({ exitCode: null, signal: null, error: Object(thrown) });
    }
  }

  /** True: it accepts from the socket with this number, or still may: programs listen later, too. */
  mayUse(number: number): boolean {
    if (!this.#life.is('starting', 'ready')) return false;
    return (
      this.#sent.has(number) || !(this.#closed.has(number) || this.servedMs > this.#startTimeoutMs)
    );
  }

  /** Forgets a socket number that may be used again. */
  forget(number: number): void {
    this.#closed.delete(number);
  }

  /** Makes it accept from the sockets of a process that has ended. */
  adopt(queue: number): void {
    this.queues.add(queue);
    for (const number of this.#sent) this.#adopt(number, queue);
  }

  #adopt(number: number, queue: number): void {
    if (this.#trySendSocket(number, queue)) this.#post({ type: 'adopt', number });
  }

  /** Returns false when the process has just ended; its exit event follows. */
  #trySendSocket(number: number, queue: number): boolean {
    try {
      this.#process.sendDescriptors([this.#sockets.fdOf(number, queue)]);
      return true;
    } catch {
      return false;
    }
  }

  async #listen(request: number, query: ListenQuery): Promise<void> {
    const answer = await this.#sockets.listen(query, this.queue);
    this.#listenProblem = 'errno' in answer ? listenProblem(query, answer) : undefined;
    if (!this.#life.is('starting', 'ready')) return;
    // A program may try another port, or retry this one; some do neither, silently.
    if (this.#life.is('starting')) {
      const isRefused = 'errno' in answer && this.#sent.size === 0;
      this.#limitStart(isRefused ? refusedListenMs : this.#startTimeoutMs);
    }
    const isNew = 'number' in answer && !this.#sent.has(answer.number);
    if (isNew && !this.#trySendSocket(answer.number, this.queue)) return;
    this.#post({ type: 'answer', request, answer });
    if (!isNew) return;
    this.#sent.add(answer.number);
    this.#closed.delete(answer.number);
    for (const queue of this.queues) {
      if (queue !== this.queue) this.#adopt(answer.number, queue);
    }
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
    this.#killAfter(this.#drainTimeoutMs);
    this.#events.onLost(why, stack);
    return true;
  }

  #failed({ message, code, stack }: TravelledError): void {
    if (this.#drainsByItself(message, stack)) return;
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

  /** Requests it to finish its requests; it is killed when that takes too long. */
  drain(): void {
    if (!this.#life.tryTransition('draining')) return;
    this.isUnwanted = true;
    clearTimeout(this.#startTimer);
    const deadlineMs = this.#drainTimeoutMs;
    this.#post({ type: 'drain', deadlineMs });
    this.#events.onLeave();
    this.#killAfter(deadlineMs);
  }

  /** Changes the number of its loops. */
  resize(loops: number): void {
    this.#post({ type: 'resize', loops, deadlineMs: this.#drainTimeoutMs });
  }

  #killAfter(deadlineMs: number): void {
    this.#killTimer = setTimeout(() => this.kill(), deadlineMs + killAfterMs);
  }

  /** The stack of a blocked loop; `undefined` when it cannot be taken. */
  stackOf(index: number): Promise<string | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#stackTaken(index, undefined), stackTimeoutMs);
      this.#stacks.set(index, (stack) => {
        clearTimeout(timer); // the next request has a timer of its own
        resolve(stack);
      });
      if (this.#stackWatch === undefined) this.#post({ type: 'takeStack', index });
      else this.#stackWatch.request();
    });
  }

  #stackTaken(index: number, stack: string | undefined): void {
    this.#stacks.get(index)?.(stack);
    this.#stacks.delete(index);
  }

  send(message: ToProcess, fds: readonly number[] = []): void {
    if (this.#life.is('ended')) return;
    if (fds.length > 0) this.#process.sendDescriptors(fds);
    this.#post(message);
  }

  #post(message: ToProcess): void {
    this.#process.wire.post(message);
  }

  /** `why` is reported instead of the signal. */
  kill(why?: string): void {
    this.#killedBecause = why;
    this.#process.child.kill('SIGKILL');
  }
}

function describe({ exitCode, signal }: ProcessExit): string {
  return signal === null ? `exit code ${exitCode}` : `killed by ${signal}`;
}
