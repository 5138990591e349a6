// The supervisor's handle of one process of the server: started with its ticket, spoken to over a wire,
// ended by a drain and, when that takes too long, by a signal. Not here: when to do so (supervisor.ts).
// Long (over 400 lines), because whatever a process says, and its end, may change its one state.

import { CodedError } from '../errors.js';
import { defer, Lifecycle, messageOf } from '../internal/index.js';
import type { WiredProcess, WorkerExit } from '../worker/index.js';
import { type ListenProblem, listenProblem } from './listen-problem.js';
import type { MemberProcess, Mesh } from './mesh.js';
import {
  type FromProcess,
  type ListenQuery,
  parseFromProcess,
  type ToProcess,
  type TravelledError,
} from './protocol.js';
import type { Sockets } from './sockets.js';
import type { StackWatch } from './stack-watch.js';
import { type StartOptions, startProcess } from './start-process.js';
import type { Workers } from './workers.js';

/** After the deadline of a drain, for what the program does at its end, in ms. */
const killAfterMs = 6000;
/** What does not tell a stack within this time, in ms, cannot. */
const stackTimeoutMs = 3000;

export interface ServerProcessOptions extends StartOptions {
  /** Of the sockets that share a port, its own are those with this number (`Sockets.fdOf`). */
  readonly queue: number;
  readonly generation: number;
  readonly sockets: Sockets;
  /** Of servers whose loops talk to each other. */
  readonly mesh: Mesh | undefined;
}

interface ProcessExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

type State = 'starting' | 'ready' | 'draining' | 'ended';

/** After a `listen()` that failed a program has so long to do better, in ms. */
const refusedListenMs = 5000;

export class ServerProcess implements MemberProcess {
  readonly number: number;
  readonly queue: number;
  /** Which sockets it accepts from: its own, and those that it has adopted. */
  readonly queues: Set<number>;
  readonly generation: number;
  /** Called once, when it begins to leave, whatever for. */
  onLeave: () => void = () => {};
  /** Called once, when it served and then ended, or lost a loop, without having been asked to. */
  onLost: (why: string, stack?: string) => void = () => {};
  /** Called when a loop that was added has not come to listen. */
  onLoopFailed: (index: number, error: TravelledError) => void = () => {};
  /** Called once, at its end, with how it ended. */
  onEnd: (how: string) => void = () => {};
  /** It was asked to leave: that it never served, or ends, is no failure. */
  isUnwanted = false;
  /** Resolves when all its loops listen; rejects with `SERVE_START_FAILED`. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  /** Resolves when it takes no more connections. */
  readonly left: Promise<void>;
  readonly #process: WiredProcess<ToProcess>;
  /** Where the program runs in the main thread. */
  readonly #stackWatch: StackWatch | undefined;
  readonly #sockets: Sockets;
  readonly #workers: Workers;
  readonly #mesh: Mesh | undefined;
  /** Sockets that it has, by number, and that it had until its program closed them. */
  readonly #sent = new Set<number>();
  readonly #closed = new Set<number>();
  /** Who waits for the stack of a loop. */
  readonly #stacks = new Map<number, (stack: string | undefined) => void>();
  readonly #started = defer<void>();
  readonly #ended = defer<void>();
  readonly #left = defer<void>();
  readonly #life: Lifecycle<State>;
  #startTimer: NodeJS.Timeout | undefined;
  readonly #drainTimeoutMs: number;
  readonly #startTimeoutMs: number;
  readonly #path: string;
  /** What the last `listen()` of the program failed with. */
  #listenProblem: ListenProblem | undefined;
  /** Why it drains, where nobody here has asked it to. */
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
    this.#drainTimeoutMs = options.serve.drainTimeoutMs;
    this.#startTimeoutMs = options.serve.startTimeoutMs;
    this.#life = new Lifecycle(`process ${options.number}`, 'starting', {
      starting: ['ready', 'draining', 'ended'],
      ready: ['draining', 'ended'],
      draining: ['ended'],
      ended: [],
    });
    this.ready = this.#started.promise;
    this.ready.catch(() => {}); // the supervisor hears of it; nobody else has to
    this.exited = this.#ended.promise;
    this.left = this.#left.promise;
    const { process: started, stackWatch } = startProcess(options);
    this.#process = started;
    this.#stackWatch = stackWatch;
    if (stackWatch !== undefined) stackWatch.onStack = (stack) => this.#stackTaken(0, stack);
    const { child, wire } = started;
    wire.onMessage = (message) => this.#receiveSafely(message);
    wire.onClose = (error) => {
      if (error !== undefined) this.kill(messageOf(error));
    };
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

  /** A program may say anything, also one of a user with fewer rights: its process ends, not the server. */
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
        this.onLoopFailed(message.index, message.error);
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

  /** This one, or all. */
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

  /** Whether it accepts from the socket with this number, or may want to: programs listen later, too. */
  mayUse(number: number): boolean {
    if (!this.#life.is('starting', 'ready')) return false;
    return (
      this.#sent.has(number) || !(this.#closed.has(number) || this.servedMs > this.#startTimeoutMs)
    );
  }

  /** The socket with this number is no more. */
  forget(number: number): void {
    this.#closed.delete(number);
  }

  /** It takes over what waits in sockets that nobody has. */
  adopt(queue: number): void {
    this.queues.add(queue);
    for (const number of this.#sent) this.#adopt(number, queue);
  }

  #adopt(number: number, queue: number): void {
    if (this.#trySendSocket(number, queue)) this.#post({ type: 'adopt', number });
  }

  /** False when it has just ended, as its exit will tell. */
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
    // A program may try another port, or this one again in a while; some do neither, and say nothing.
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

  /** It takes no more connections, asked or not: the system may have told it to end. */
  #leaving(): void {
    this.#left.resolve();
    this.#drainsByItself('it was told to end');
  }

  /** False when it does not serve. */
  #drainsByItself(why: string, stack?: string): boolean {
    if (!this.#life.is('ready')) return false;
    this.#life.transition('draining');
    this.#leftBecause = why;
    this.onLeave();
    this.#killAfter(this.#drainTimeoutMs);
    this.onLost(why, stack);
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

  /** It may take so much longer from now on, and no longer in all than a start may. */
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
    if (wasServing) this.onLeave();
    if (wasServing) this.onLost(how);
    this.onEnd(how);
    this.#left.resolve();
    this.#ended.resolve();
  }

  /** Asks it to finish what it holds; it is killed when that takes too long. */
  drain(): void {
    if (!this.#life.tryTransition('draining')) return;
    this.isUnwanted = true;
    clearTimeout(this.#startTimer);
    const deadlineMs = this.#drainTimeoutMs;
    this.#post({ type: 'drain', deadlineMs });
    this.onLeave();
    this.#killAfter(deadlineMs);
  }

  /** Serves from so many loops from now on. */
  resize(loops: number): void {
    this.#post({ type: 'resize', loops, deadlineMs: this.#drainTimeoutMs });
  }

  #killAfter(deadlineMs: number): void {
    this.#killTimer = setTimeout(() => this.kill(), deadlineMs + killAfterMs);
  }

  /** Where a blocked loop is; `undefined` when nobody can tell. */
  stackOf(index: number): Promise<string | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#stackTaken(index, undefined), stackTimeoutMs);
      this.#stacks.set(index, (stack) => {
        clearTimeout(timer); // it may be asked again soon
        resolve(stack);
      });
      if (this.#stackWatch === undefined) this.#post({ type: 'askStack', index });
      else this.#stackWatch.ask();
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

  /** `why` is told instead of the signal. */
  kill(why?: string): void {
    this.#killedBecause = why;
    this.#process.child.kill('SIGKILL');
  }
}

function describe({ exitCode, signal }: ProcessExit): string {
  return signal === null ? `exit code ${exitCode}` : `killed by ${signal}`;
}
