// Workers on other machines as a pool sees them. The pool sends one request after the other to nodes with
// free workers; a node that grants one starts a process, and a tunnel replaces its socket. Nodes without
// free workers are not subscribed, so a busy machine gets no requests. Not here: the nodes' side
// (worker-lending.ts), the bytes between (tunnel.ts).

import { randomBytes } from 'node:crypto';
import type { AnyFunction } from '../../context/index.js';
import { CodedError, type ErrorCode } from '../../errors.js';
import { defer } from '../../lib/index.js';
import type {
  DurableOptions,
  RemoteWorkers,
  WorkerExit,
  WorkerHandle,
  WorkerOptions,
  WorkerTicket,
} from '../../worker/index.js';
import { clocksDiffer, isOtherClock } from '../bus/signature.js';
import {
  type PoolMessage,
  parseWorkerMessage,
  type WorkerRequest,
  writeWorkerRequest,
} from '../protocol.js';
import { DurableTasks } from '../tasks/durable.js';
import {
  checkOpen,
  requireSigner,
  type TaskOptions,
  type WorkersOptions,
} from '../tasks/task-options.js';
import { Tunnel } from './tunnel.js';

const noWorker: ErrorCode = 'CLUSTER_NO_WORKER';
/** Delay after a request that no node could grant, and after one without an answer, in ms. */
const retryMs = 250;
const answerMs = 3000;
/** Time without a first worker after which a warning is emitted, in ms. */
const quietMs = 5000;
/** Time without a message after which a worker that has to end counts as ended, in ms. */
const endMs = 5000;

export class ClusterWorkers implements RemoteWorkers {
  readonly #options: TaskOptions;
  readonly #durable: DurableTasks;
  /** Requested workers that are not granted yet. */
  readonly #waiting: ClusterWorker[] = [];
  #timer: NodeJS.Timeout | undefined;
  #quiet: NodeJS.Timeout | undefined;
  #wasGranted = false;

  constructor(options: TaskOptions) {
    this.#options = options;
    this.#durable = new DurableTasks(options);
  }

  check(): void {
    this.#signedOptions();
  }

  #signedOptions(): WorkersOptions {
    checkOpen(this.#options);
    return requireSigner(
      this.#options,
      'a pool on a cluster sends functions (durable ones may go by name, see task)',
    );
  }

  runDurably(fn: AnyFunction, args: unknown[], options: DurableOptions): Promise<unknown> {
    return this.#durable.run(fn, args, options);
  }

  start(ticket: WorkerTicket, options: WorkerOptions, onRetire: () => void): WorkerHandle {
    const worker = new ClusterWorker(this.#signedOptions(), ticket, options, {
      onRetire,
      onGranted: () => {
        this.#wasGranted = true;
        this.#over(worker);
      },
      onNobody: () => this.#again(retryMs),
      onEnd: () => this.#over(worker),
    });
    this.#waiting.push(worker);
    if (this.#waiting.length > 1) return worker;
    if (!this.#wasGranted) this.#quiet ??= setTimeout(() => this.#warn(), quietMs).unref();
    this.#requestFirst();
    return worker;
  }

  /** Warns when no worker comes: without nodes the pool would wait silently. */
  #warn(): void {
    if (this.#wasGranted || this.#waiting.length === 0) return;
    process.emitWarning(
      `no node of cluster "${this.#options.name}" has a worker for this pool, which waits: start one with "manycore worker --nats URL", with the same secret and a clock that agrees within a minute, or give it more --workers`,
      { type: 'ManycoreWarning', code: noWorker },
    );
  }

  #requestFirst(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    first.request();
    this.#again(answerMs);
  }

  #again(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#requestFirst(), delayMs);
  }

  /** Removes a worker that waits no more. */
  #over(worker: ClusterWorker): void {
    const at = this.#waiting.indexOf(worker);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    if (at > 0) return;
    clearTimeout(this.#timer);
    this.#requestFirst();
  }
}

interface ClusterWorkerEvents {
  readonly onRetire: () => void;
  readonly onGranted: () => void;
  /** Called when no node has a free worker. */
  readonly onNobody: () => void;
  readonly onEnd: () => void;
}

/** A worker on another machine; for its pool it is a process. */
class ClusterWorker implements WorkerHandle {
  readonly kind = 'process';
  readonly pipe: Tunnel;
  readonly exited: Promise<WorkerExit>;
  pid: number | undefined;
  readonly #options: WorkersOptions;
  readonly #own: string;
  readonly #request: Omit<WorkerRequest, 'time'>;
  readonly #events: ClusterWorkerEvents;
  /** Subject of the worker's end. */
  #other: string | undefined;
  readonly #resolveExit: (exit: WorkerExit) => void;
  #hasEnded = false;

  constructor(
    options: WorkersOptions,
    { workerId, concurrentTasks, maxRssBytes }: WorkerTicket,
    { maxHeapMb, execArgv, env }: WorkerOptions,
    events: ClusterWorkerEvents,
  ) {
    const { connection, signer, subjects } = options;
    const tunnel = randomBytes(16).toString('hex');
    this.#options = options;
    this.#events = events;
    const { promise, resolve } = defer<WorkerExit>();
    this.exited = promise;
    this.#resolveExit = resolve;
    this.#own = subjects.tunnel(tunnel, 'pool');
    this.#request = {
      tunnel,
      workerId,
      concurrentTasks,
      maxRssBytes,
      maxHeapMb,
      execArgv,
      env,
    };
    this.pipe = new Tunnel({
      connection,
      signer,
      own: this.#own,
      onControl: (message) => this.#receive(message),
      onNobody: () => {
        if (this.isWaiting) this.#events.onNobody();
      },
    });
    this.pipe.on('error', (error) => this.#end({ exitCode: null, signal: null, error }));
    // Both sides have ended the stream: the fate of the process is unknown here.
    this.pipe.on('close', () => this.#end({ exitCode: 0, signal: null, error: undefined }));
  }

  /** True until a node grants a worker. */
  get isWaiting(): boolean {
    return this.pid === undefined;
  }

  request(): void {
    const { connection, signer, subjects } = this.#options;
    const request = writeWorkerRequest({ ...this.#request, time: Date.now() });
    signer.sign(request, subjects.workers);
    try {
      connection.publish(subjects.workers, request, { reply: this.#own });
    } catch {
      // the connection is closing, which ends the tunnel
    }
  }

  #receive(received: unknown): void {
    const message = parseWorkerMessage(received);
    switch (message?.type) {
      case 'granted':
        if (!this.isWaiting) {
          // A repeated request was granted a second time: that node may reclaim its worker.
          if (message.subject !== this.#other) this.#send({ type: 'refuse' }, message.subject);
          break;
        }
        this.pid = message.pid;
        this.#other = message.subject;
        this.pipe.connect(message.subject, true);
        if (this.#hasEnded) this.#send({ type: 'kill' });
        this.#events.onGranted();
        break;
      case 'busy':
        if (this.isWaiting) this.#events.onNobody();
        break;
      case 'failed':
        this.#failed(message.why, message.now);
        break;
      case 'retire':
        if (!this.#hasEnded) this.#events.onRetire();
        break;
      case 'exit':
        this.#end({ exitCode: message.exitCode, signal: message.signal, error: undefined });
        break;
    }
  }

  /** `now`: the clock of a node that refused the time of a request, which may have been recorded. */
  #failed(why: string, now: number | undefined): void {
    let error = new Error(why);
    if (now !== undefined) {
      if (!this.isWaiting || !isOtherClock(now, Date.now())) return;
      error = clocksDiffer('a request for a worker', 'a node', (now - Date.now()) / 1000);
    }
    this.#end({ exitCode: null, signal: null, error });
  }

  #send(message: PoolMessage, other?: string): void {
    this.pipe.sendControl(message, other);
  }

  terminate(): void {
    this.#stop('terminate');
  }

  kill(): void {
    this.#stop('kill');
  }

  #stop(type: PoolMessage['type']): void {
    if (this.isWaiting) {
      setImmediate(() => this.#end({ exitCode: 0, signal: null, error: undefined }));
      return;
    }
    this.#send({ type });
    const lost = (): void => {
      this.pipe.destroy(
        new CodedError('CLUSTER_WORKER_LOST', 'a worker has not confirmed its end'),
      );
    };
    setTimeout(lost, endMs).unref();
  }

  /** Empty: the connection keeps the event loop alive. */
  ref(): void {}

  #end(exit: WorkerExit): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#events.onEnd();
    if (this.isWaiting) this.pipe.destroy();
    this.#resolveExit(exit);
  }
}
