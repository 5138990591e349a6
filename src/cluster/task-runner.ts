// The durable tasks of a node: while a worker is free it asks JetStream for one, runs it there, keeps the
// result and only then says that it is done. A node that is lost says nothing, and the task goes to another.
// Not here: lending workers to pools (worker-lending.ts), what the worker does (task-entry.ts).

import { setTimeout as wait } from 'node:timers/promises';
import { task } from '../context/index.js';
import { CodedError, hasCode } from '../errors.js';
import { announcements, messageOf } from '../internal/index.js';
import { Pool } from '../pool/index.js';
import { refused } from './errors.js';
import { type GivenTask, keptMs, resultSubject, silentMs, TaskStore } from './jetstream.js';
import { guarded } from './listen.js';
import { signatureBytes } from './protocol.js';
import { verified } from './signature.js';
import type { Slots } from './slots.js';
import type { runTask } from './task-entry.js';
import { readTask, type TaskOrder, writeOutcome } from './task-frames.js';
import type { TaskOptions } from './task-options.js';
import { ClusterValues } from './values.js';

const beatMs = silentMs / 4;
const retryMs = 1000;
const maxPauseMs = 60_000;
/** So long nobody is given what was given back, in ms. */
const giveBackMs = 1000;
/** A task that was given out so often, and never done, is one that nodes do not survive. */
const maxDeliveries = 20;

const entry = new URL('./task-entry.js', import.meta.url);

/** In a worker, which imports it: a node has nothing of a task in it. */
function inWorker(name: string): typeof runTask {
  return Object.defineProperty(task<typeof runTask>(entry, 'runTask'), 'name', { value: name });
}

export interface TaskRunnerOptions {
  readonly cluster: TaskOptions;
  readonly slots: Slots;
  /** Without a secret tasks may call what these modules export, and nothing else. */
  readonly modules: ReadonlySet<string>;
}

export class TaskRunner {
  readonly #options: TaskRunnerOptions;
  readonly #pool: Pool;
  readonly #values: ClusterValues;
  readonly #running = new Set<Promise<void>>();
  /** Subjects of those that it has in hand. */
  readonly #inHand = new Set<string>();
  /** Opened anew after a failure. */
  #store: TaskStore | undefined;
  /** Why tasks wait, as it was told last: for the server, for a worker. */
  readonly #told = new Map<'server' | 'worker', string>();
  /** No worker could be started the last times: so long nothing is asked for, in ms. */
  #pauseMs = 0;
  #isClosing = false;
  /** What it still has is for others. */
  #isLate = false;

  private constructor(options: TaskRunnerOptions, store: TaskStore | undefined) {
    this.#options = options;
    this.#store = store;
    this.#pool = new Pool({ size: { min: 0, max: options.slots.count } });
    this.#values = new ClusterValues(options.cluster.signer !== undefined);
    void this.#pull();
  }

  /** Takes tasks from now on. Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_NOT_DURABLE`. */
  static async start(options: TaskRunnerOptions): Promise<TaskRunner> {
    const { connection, name } = options.cluster;
    const store = await TaskStore.open(connection, name).catch((error: unknown) => {
      if (error instanceof CodedError) throw error;
      return undefined; // the server is away: it is tried again
    });
    return new TaskRunner(options, store);
  }

  /** Tasks that run now. */
  get running(): number {
    return this.#running.size;
  }

  async #pull(): Promise<void> {
    const { cluster, slots } = this.#options;
    while (!this.#isClosing && !cluster.connection.isClosed()) {
      await slots.free();
      if (this.#pauseMs > 0) await wait(this.#pauseMs, undefined, { ref: false });
      if (this.#isClosing) return;
      const given = await this.#withStore((store) => store.nextTask());
      if (given !== undefined) this.#take(given);
    }
  }

  /** `undefined` where that failed: the server is away or starts, or has lost its streams. */
  async #withStore<T>(work: (store: TaskStore) => Promise<T>): Promise<T | undefined> {
    const { connection, name } = this.#options.cluster;
    try {
      this.#store ??= await TaskStore.open(connection, name);
      const done = await work(this.#store);
      this.#told.delete('server');
      return done;
    } catch (error) {
      this.#store = undefined;
      this.#tell('server', error);
      if (!connection.isClosed()) await wait(retryMs, undefined, { ref: false });
      return undefined;
    }
  }

  /** Once, until it goes on. */
  #tell(what: 'server' | 'worker', error: unknown): void {
    const why = `durable tasks wait: ${messageOf(error)}`;
    if (this.#told.get(what) === why) return;
    this.#told.set(what, why);
    announcements.clusterRefused.publish({ why });
  }

  #take(given: GivenTask): void {
    const { subject } = given;
    // A server that was away gives out again what it had given out before.
    if (this.#inHand.has(subject)) return;
    this.#inHand.add(subject);
    const beat = setInterval(() => guarded(() => given.working()), beatMs);
    const running = this.#inSlot(given)
      .catch((error: unknown) => announcements.clusterRefused.publish({ why: messageOf(error) }))
      .finally(() => {
        clearInterval(beat);
        this.#inHand.delete(subject);
        this.#running.delete(running);
      });
    this.#running.add(running);
  }

  /** A pool may have taken the last worker meanwhile. */
  async #inSlot(given: GivenTask): Promise<void> {
    const { slots } = this.#options;
    while (!slots.take()) {
      if (this.#mayGiveBack(given)) return given.nak(giveBackMs);
      await slots.free();
    }
    try {
      await this.#work(given);
    } finally {
      slots.giveBack();
    }
  }

  /** What is given back counts as given out: often enough it is kept until it can be done. */
  #mayGiveBack({ info }: GivenTask): boolean {
    return this.#isClosing || info.deliveryCount < maxDeliveries / 2;
  }

  async #work(given: GivenTask): Promise<void> {
    const { subject, info } = given;
    const { name, signer } = this.#options.cluster;
    const result = resultSubject(name, subject);
    const task = this.#open(given);
    while (!this.#isOver) {
      const hasResult = await this.#withStore((store) => this.#hasResult(store, result));
      if (hasResult === undefined) continue;
      const outcome = hasResult
        ? undefined
        : info.deliveryCount > maxDeliveries
          ? this.#thrown(lost())
          : await this.#run(task);
      if (outcome !== undefined) {
        signer?.sign(outcome, result);
        await this.#keep(result, outcome);
      } else if (!hasResult) {
        if (this.#mayGiveBack(given)) return given.nak(giveBackMs);
        continue;
      }
      if (!this.#isOver) await given.ackAck().catch(() => {}); // else it comes again, and has a result
      return;
    }
  }

  /** Throws `CLUSTER_REFUSED` for what nobody of this cluster has asked for, and nobody gets it again. */
  #open(given: GivenTask): Buffer {
    const { signer } = this.#options.cluster;
    try {
      return verified(signer, given.data, given.subject);
    } catch (error) {
      given.term();
      throw error;
    }
  }

  /** What is not signed somebody has put there, without the secret: it goes. */
  async #hasResult(store: TaskStore, subject: string): Promise<boolean> {
    const kept = await store.result(subject);
    if (kept === undefined) return false;
    try {
      verified(this.#options.cluster.signer, kept.data, subject);
      return true;
    } catch {
      await store.removeResult(kept.seq);
      return false;
    }
  }

  /** `undefined`: no worker could begin it, here and now. */
  async #run(task: Buffer): Promise<Buffer | undefined> {
    const { cluster, modules } = this.#options;
    const { connection, signer } = cluster;
    try {
      const { order, call } = readTask(task);
      check(order, signer === undefined ? modules : undefined);
      const { name, timeoutMs, retry, target } = order;
      const options = { timeoutMs: timeoutMs ?? Infinity, retry };
      const bytes = await this.#pool
        .with(options)
        .run(inWorker(name), call, target, signer !== undefined);
      this.#pauseMs = 0;
      this.#told.delete('worker');
      if (bytes.byteLength > (connection.info?.max_payload ?? Infinity)) throw tooLarge(bytes);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    } catch (error) {
      if (hasCode(error, 'POOL_CLOSED')) return undefined;
      if (!hasCode(error, 'WORKER_START_FAILED')) return this.#thrown(error);
      this.#tell('worker', error);
      this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, retryMs), maxPauseMs);
      await wait(retryMs, undefined, { ref: false });
      return undefined;
    }
  }

  #thrown(error: unknown): Buffer {
    const { signer } = this.#options.cluster;
    return writeOutcome(
      true,
      this.#values.encodeThrown(error),
      signer === undefined ? 0 : signatureBytes,
    );
  }

  /** It has cost time: it is kept as soon as the server is back, unless this node has to end before. */
  async #keep(subject: string, outcome: Buffer): Promise<void> {
    let isKept: boolean | undefined;
    while (isKept !== true && !this.#isOver) {
      isKept = await this.#withStore(
        async (store) =>
          (await store.putResult(subject, outcome)) || (await this.#hasResult(store, subject)),
      );
    }
  }

  get #isOver(): boolean {
    return this.#isLate || this.#options.cluster.connection.isClosed();
  }

  /** Takes no more. What runs may take so long, in ms; then others do it. */
  async close(drainTimeoutMs: number): Promise<void> {
    this.#isClosing = true;
    const late = async (): Promise<void> => {
      await wait(drainTimeoutMs, undefined, { ref: false });
      this.#isLate = true;
      await this.#pool.destroy();
    };
    await Promise.race([Promise.all(this.#running), late()]);
    await this.#pool.destroy();
  }
}

/** Throws for a task that is not to be run. `modules`: those alone may be called. */
function check({ time, target }: TaskOrder, modules: ReadonlySet<string> | undefined): void {
  if (Date.now() - time > keptMs) throw refused('a durable task is older than a week');
  if (modules === undefined || (target !== null && modules.has(target.url))) return;
  const what = target === null ? 'a function' : `${target.exportName} of ${target.url}`;
  const wayOut = 'without a secret it runs exports of modules that it was given, see task()';
  throw new CodedError('CLUSTER_UNSIGNED', `a node was asked for ${what}: ${wayOut}`);
}

function lost(): CodedError {
  const message = `it was given out ${maxDeliveries} times, and no node has said that it is done`;
  return new CodedError('WORKER_EXITED', `a durable task is given up: ${message}`);
}

function tooLarge({ byteLength }: Uint8Array): CodedError {
  const text = `the result of a durable task has ${byteLength} bytes, more than the NATS server takes`;
  const wayOut = 'write it somewhere and return where, or raise max_payload of the server';
  return new CodedError('BUS_TOO_LARGE', `${text}: ${wayOut}`);
}
