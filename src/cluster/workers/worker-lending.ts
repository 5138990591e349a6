// Grants workers of this machine to the pools of its cluster. It subscribes to requests only while a worker
// is free. A worker is started as by any pool; its socket is joined to a tunnel, and it ends when the pool
// at the other end is gone. Before the machine ends, each pool is asked to give its worker no more tasks,
// and releases it after the current ones. Not here: the pool's side (workers.ts).

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { offerChannel } from '../../channels/index.js';
import { defer, messageOf } from '../../lib/index.js';
import { startProcess, type WorkerHandle } from '../../worker/index.js';
import { NoticeLimit } from '../bus/notice-limit.js';
import { Refusals } from '../bus/refusals.js';
import { maxAgeMs, verified, wrongTime } from '../bus/signature.js';
import { listen } from '../nats/listen.js';
import type { NatsMessage, NatsSubscription } from '../nats/nats.js';
import {
  parsePoolMessage,
  parseWorkerRequest,
  tunnelFrame,
  type WorkerMessage,
  type WorkerRequest,
  writeTunnelFrame,
} from '../protocol.js';
import type { WorkersOptions } from '../tasks/task-options.js';
import type { Slots } from './slots.js';
import { Tunnel, tunnelTarget } from './tunnel.js';

const queueGroup = 'nodes';
/** Time in which the output of an ended worker is still delivered, in ms. */
const endMs = 3000;
/** Period of repeated `retire` messages, in ms: a server that restarts loses messages. */
const retireAgainMs = 1000;

/** A lent worker. */
interface Lent {
  readonly handle: WorkerHandle;
  readonly granted: WorkerMessage;
  readonly tunnel: Tunnel;
  /** Time of the pool's last request. */
  requestedAt: number;
}

export class WorkerLending {
  readonly #options: WorkersOptions;
  readonly #slots: Slots;
  /** Lent workers by the id of their tunnel. */
  readonly #lent = new Map<string, Lent>();
  /** Ended tunnels: when they ended, and the time of their pools' last requests. */
  readonly #over = new Map<string, { readonly since: number; readonly requestedAt: number }>();
  readonly #refusals = new Refusals();
  readonly #notices = new NoticeLimit();
  #subscription: NatsSubscription | undefined;
  readonly #drainTimeoutMs: number;
  #closing: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;

  /** Grants free workers from now on. */
  constructor(options: WorkersOptions, slots: Slots, drainTimeoutMs: number) {
    this.#options = options;
    this.#slots = slots;
    this.#drainTimeoutMs = drainTimeoutMs;
    slots.handleChange(() => this.#listen());
    this.#listen();
  }

  /** Number of workers that work for a pool now. */
  get lentWorkers(): number {
    return this.#lent.size;
  }

  #listen(): void {
    const { connection, subjects } = this.#options;
    const isFree = this.#closing === undefined && this.#slots.isFree;
    if (!isFree) {
      this.#subscription?.drain().catch(() => {}); // requests on their way are answered with `busy`
      this.#subscription = undefined;
    } else if (!connection.isClosed()) {
      this.#subscription ??= listen(
        connection,
        subjects.workers,
        (message) => this.#receive(message),
        {
          queue: queueGroup,
        },
      );
    }
  }

  /** Throws for a message that is no valid request. */
  #receive({ subject, data, reply }: NatsMessage): void {
    const request = parseWorkerRequest(verified(this.#options.signer, data, subject));
    if (reply === undefined || !reply.includes(request.tunnel)) throw new Error('it names no pool');
    const now = Date.now();
    const ageMs = now - request.time;
    if (Math.abs(ageMs) > maxAgeMs) {
      const why = wrongTime('a request of a pool for a worker', ageMs);
      this.#refusals.report('clock', why);
      if (this.#notices.take()) this.#answer({ type: 'failed', why, now }, reply);
      return; // pools repeat it
    }
    this.#answer(this.#lend(request, reply), reply);
  }

  /** Returns the answer to the pool. */
  #lend(request: WorkerRequest, pool: string): WorkerMessage {
    const known = this.#lent.get(request.tunnel);
    if (known !== undefined) {
      known.requestedAt = Math.max(known.requestedAt, request.time);
      return known.granted;
    }
    if (this.#isOld(request)) throw new Error('a request for a worker came again');
    if (this.#closing !== undefined || !this.#slots.isFree) return { type: 'busy' };
    const { connection, signer, subjects } = this.#options;
    const own = subjects.tunnel(request.tunnel, randomBytes(8).toString('hex'));
    try {
      const handle = startWorker(request);
      const { pipe, pid } = handle;
      if (pipe === undefined || pid === undefined)
        throw new Error('the system has started no process');
      const tunnel = new Tunnel({
        connection,
        signer,
        own,
        onControl: (message) => this.#control(handle, tunnel, message),
        onUntaken: () => this.#answer(granted, pool), // the first answer may be lost
      });
      const granted = { type: 'granted', subject: own, pid, host: hostname() } as const;
      this.#lent.set(request.tunnel, { handle, granted, tunnel, requestedAt: request.time });
      this.#slots.take();
      pipe.on('error', () => {}); // the process has ended, and the `exit` message follows
      tunnel.on('error', () => handle.kill());
      pipe.pipe(tunnel).pipe(pipe);
      tunnel.connect(pool, false);
      void handle.exited.then(({ exitCode, signal }) => {
        tunnel.sendControl({ type: 'exit', exitCode, signal });
        this.#returned(request.tunnel);
      });
      return granted;
    } catch (error) {
      return { type: 'failed', why: messageOf(error) };
    }
  }

  /**
   * Returns true for a repeated request after its worker has ended; a pool without one sends a later time.
   */
  #isOld({ tunnel, time }: WorkerRequest): boolean {
    const now = Date.now();
    for (const [old, { since }] of this.#over) {
      if (now - since > 2 * maxAgeMs) this.#over.delete(old);
    }
    const over = this.#over.get(tunnel);
    return over !== undefined && time <= over.requestedAt;
  }

  #control(handle: WorkerHandle, tunnel: Tunnel, received: unknown): void {
    const message = parsePoolMessage(received);
    if (message?.type === 'refuse') tunnel.abandon();
    if (message?.type === 'terminate') handle.terminate();
    else if (message !== undefined) handle.kill();
  }

  #answer(message: WorkerMessage, pool: string): void {
    const { connection, signer } = this.#options;
    const bytes = Buffer.from(JSON.stringify(message));
    const frame = writeTunnelFrame({ kind: tunnelFrame.control, offset: 0, bytes });
    signer.sign(frame, tunnelTarget(pool, ''));
    try {
      connection.publish(pool, frame);
    } catch {
      // the connection is closing
    }
  }

  /** Frees the slot of an ended worker. */
  #returned(name: string): void {
    const lent = this.#lent.get(name);
    this.#lent.delete(name);
    this.#over.set(name, { since: Date.now(), requestedAt: lent?.requestedAt ?? Infinity });
    // The last bytes of the worker are still to be acknowledged.
    setTimeout(() => lent?.tunnel.destroy(), endMs).unref();
    this.#slots.giveBack();
    if (this.#lent.size === 0) this.#onEmpty?.();
  }

  /**
   * Stops granting; resolves when the workers have ended, each after its current tasks or at the deadline.
   */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      const { promise, resolve } = defer<void>();
      this.#closing = promise;
      this.#listen();
      this.#drain(resolve);
    }
    return this.#closing;
  }

  #drain(onEmpty: () => void): void {
    if (this.#lent.size === 0) {
      onEmpty();
      return;
    }
    const again = setInterval(() => this.#retireAll(), retireAgainMs);
    const deadline = setTimeout(() => this.#killAll(), this.#drainTimeoutMs);
    this.#onEmpty = () => {
      clearInterval(again);
      clearTimeout(deadline);
      onEmpty();
    };
    this.#retireAll();
  }

  #retireAll(): void {
    const message: WorkerMessage = { type: 'retire' };
    for (const { tunnel } of this.#lent.values()) tunnel.sendControl(message);
  }

  #killAll(): void {
    for (const { handle } of this.#lent.values()) handle.kill();
  }

  /** As `close()`, but ends the workers at once, during their tasks. */
  destroy(): Promise<void> {
    const closed = this.close();
    this.#killAll();
    return closed;
  }
}

function startWorker({
  workerId,
  concurrentTasks,
  maxRssBytes,
  ...options
}: WorkerRequest): WorkerHandle {
  const offer = offerChannel('socket', { worker: 'process', spin: false });
  const ticket = {
    workerId,
    parentPid: process.pid,
    parentThread: 0,
    channel: offer.ticket,
    concurrentTasks,
    maxRssBytes,
    pinnedCores: [],
    niceIncrement: 0,
    loads: undefined,
  };
  const { maxHeapMb, execArgv, env } = options;
  return startProcess(ticket, offer, {
    kind: 'process',
    maxHeapMb,
    execArgv,
    env,
    onOutput: undefined,
    partition: undefined,
  });
}
