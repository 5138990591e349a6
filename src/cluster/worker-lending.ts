// A machine that lends workers to the pools of its cluster. It listens to requests only while a worker is free. A
// worker is a process as any pool starts it; its socket is joined to a tunnel, and it ends when the pool at the
// other end is gone. When the machine is to end it asks each pool to take no more of its worker, and the pool lets
// it go after the tasks that it has. Not here: that end (workers.ts).

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { offerChannel } from '../channels/index.js';
import { defer, messageOf } from '../internal/index.js';
import { startProcess, type WorkerHandle } from '../worker/index.js';
import { listen } from './listen.js';
import type { NatsMessage, NatsSubscription } from './nats.js';
import {
  parsePoolMessage,
  parseWorkerRequest,
  tunnelFrame,
  type WorkerMessage,
  type WorkerRequest,
  writeTunnelFrame,
} from './protocol.js';
import { maxAgeMs, verified } from './signature.js';
import type { Slots } from './slots.js';
import type { WorkersOptions } from './task-options.js';
import { Tunnel, tunnelTarget } from './tunnel.js';

const queueGroup = 'nodes';
/** How long a worker that has ended may take to hand over what it had sent, in ms. */
const endMs = 3000;
/** Pools are asked again so often, in ms: a server that is away forgets what it is given. */
const retireAgainMs = 1000;

/** A worker that is lent. */
interface Lent {
  readonly handle: WorkerHandle;
  readonly granted: WorkerMessage;
  readonly tunnel: Tunnel;
  /** When the pool asked last. */
  requestedAt: number;
}

export class WorkerLending {
  readonly #options: WorkersOptions;
  readonly #slots: Slots;
  /** By the name of the tunnel. */
  readonly #lent = new Map<string, Lent>();
  /** Tunnels that have ended, when, and when their pools had asked last. */
  readonly #over = new Map<string, { readonly since: number; readonly requestedAt: number }>();
  #subscription: NatsSubscription | undefined;
  readonly #drainTimeoutMs: number;
  #closing: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;

  /** Lends those that are free from now on. */
  constructor(options: WorkersOptions, slots: Slots, drainTimeoutMs: number) {
    this.#options = options;
    this.#slots = slots;
    this.#drainTimeoutMs = drainTimeoutMs;
    slots.onChange = () => this.#listen();
    this.#listen();
  }

  /** Workers that work for a pool now. */
  get lentWorkers(): number {
    return this.#lent.size;
  }

  #listen(): void {
    const { connection, subjects } = this.#options;
    const isFree = this.#closing === undefined && this.#slots.isFree;
    if (!isFree) {
      this.#subscription?.drain().catch(() => {}); // what is on its way is told that we are busy
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

  /** Throws for what asks for no worker. */
  #receive({ subject, data, reply }: NatsMessage): void {
    const request = parseWorkerRequest(verified(this.#options.signer, data, subject));
    if (Math.abs(Date.now() - request.time) > maxAgeMs)
      throw new Error('a request for a worker is old');
    if (reply === undefined || !reply.includes(request.tunnel)) throw new Error('it names no pool');
    this.#answer(this.#lend(request, reply), reply);
  }

  /** What the pool hears. */
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
      pipe.on('error', () => {}); // its process has ended, which is told
      tunnel.on('error', () => handle.kill());
      pipe.pipe(tunnel).pipe(pipe);
      tunnel.connect(pool, false);
      handle.onExit = ({ exitCode, signal }) => {
        tunnel.sendControl({ type: 'exit', exitCode, signal });
        this.#returned(request.tunnel);
      };
      return granted;
    } catch (error) {
      return { type: 'failed', why: messageOf(error) };
    }
  }

  /** Its worker has ended: who asks again is the pool, which had not taken it, only if it asks later. */
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
      // the connection is being closed
    }
  }

  /** The worker has ended, and another may be lent. */
  #returned(name: string): void {
    const lent = this.#lent.get(name);
    this.#lent.delete(name);
    this.#over.set(name, { since: Date.now(), requestedAt: lent?.requestedAt ?? Infinity });
    // What it had sent last is still to be acknowledged.
    setTimeout(() => lent?.tunnel.destroy(), endMs).unref();
    this.#slots.giveBack();
    if (this.#lent.size === 0) this.#onEmpty?.();
  }

  /** Lends no more; resolves when its workers have ended, each after the tasks that it has, or at the deadline. */
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

  /** As `close()`, with the workers ended at once, whatever they do. */
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
    loads: undefined,
  };
  const { maxHeapMb, execArgv, env } = options;
  return startProcess(ticket, offer, {
    kind: 'process',
    maxHeapMb,
    execArgv,
    env,
    onOutput: undefined,
  });
}
