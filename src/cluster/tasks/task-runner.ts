// Durable tasks of a node. While a worker is free, the node pulls a task from JetStream, runs it there,
// stores the result, and acknowledges the task only then. A lost node acknowledges nothing, so another node
// gets the task. Not here: lending workers to pools (worker-lending.ts), the worker's side (task-entry.ts).

import { setTimeout as wait } from 'node:timers/promises';
import { LoadedVersions, type ModuleVersion, task } from '../../context/index.js';
import { CodedError, hasCode } from '../../errors.js';
import { announcements, messageOf } from '../../lib/index.js';
import { Pool } from '../../pool/index.js';
import { NoticeLimit } from '../bus/notice-limit.js';
import { maxAgeMs, type Signer, verified } from '../bus/signature.js';
import { ClusterValues } from '../bus/values.js';
import { refused } from '../errors.js';
import { guarded } from '../nats/listen.js';
import { signatureBytes } from '../protocol.js';
import type { Slots } from '../workers/slots.js';
import { type GivenTask, giveBackMs, resultSubject, silentMs, TaskStore } from './jetstream.js';
import { noticeSubject, signatureOf, writeNotice } from './refused-tasks.js';
import type { runTask } from './task-entry.js';
import { readTask, writeOutcome } from './task-frames.js';
import type { TaskOptions } from './task-options.js';
import { check, orderOf, otherVersion, versionDelayMs } from './task-order.js';

/** Limit of the tasks that a node remembers as done. */
const maxRemembered = 100_000;
const nsPerMs = 1e6;

const beatMs = silentMs / 4;
const retryMs = 1000;
const maxPauseMs = 60_000;
/** Deliveries after which an unfinished task fails: it probably kills its nodes. */
const maxDeliveries = 20;

const entry = new URL('./task-entry.js', import.meta.url);

/** Imports the entry inside the worker: the node loads nothing of a task. */
function inWorker(name: string): typeof runTask {
  return Object.defineProperty(task<typeof runTask>(entry, 'runTask'), 'name', { value: name });
}

export interface TaskRunnerOptions {
  readonly cluster: TaskOptions;
  readonly slots: Slots;
  /** The only modules whose exports tasks may call in a cluster without a secret. */
  readonly modules: ReadonlySet<string>;
}

/** Cause of a wait: the server, the room for results, or the start of a worker. */
type Obstacle = 'server' | 'results' | 'worker';

export class TaskRunner {
  readonly #options: TaskRunnerOptions;
  #pool: Pool;
  /** Code that the workers of that pool have. */
  #loaded = new LoadedVersions();
  /** Pools whose workers have older code, and run their last tasks. */
  readonly #oldPools = new Set<Pool>();
  readonly #values: ClusterValues;
  readonly #running = new Set<Promise<void>>();
  /** Subjects of the tasks that this node has. */
  readonly #inHand = new Set<string>();
  /** Signatures of tasks that ran here, the oldest first: recorded ones do not run again. */
  readonly #done = new Set<string>();
  readonly #notices = new NoticeLimit();
  /** Opened again after a failure. */
  #store: TaskStore | undefined;
  /** Last announced reasons for which tasks wait. */
  readonly #announced = new Map<Obstacle, string>();
  /** Pause before the next pull after workers failed to start, in ms. */
  #pauseMs = 0;
  #isClosing = false;
  /** True: the remaining tasks are left to other nodes. */
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
      return undefined; // the server is away: tried again
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

  /** Resolves with `undefined` on failure: the server is away, starts, is full, or has lost its streams. */
  async #withStore<T>(
    work: (store: TaskStore) => Promise<T>,
    what: 'server' | 'results' = 'server',
  ): Promise<T | undefined> {
    const { connection, name } = this.#options.cluster;
    try {
      this.#store ??= await TaskStore.open(connection, name);
      const done = await work(this.#store);
      this.#announced.delete(what);
      return done;
    } catch (error) {
      this.#store = undefined;
      this.#announce(what, error);
      if (!connection.isClosed()) await wait(retryMs, undefined, { ref: false });
      return undefined;
    }
  }

  /** Announces a reason once, until tasks continue. */
  #announce(what: Obstacle, error: unknown): void {
    const why = `durable tasks wait: ${messageOf(error)}`;
    if ([...this.#announced.values()].includes(why)) return;
    this.#announced.set(what, why);
    announcements.clusterRefused.publish({ why });
  }

  #take(given: GivenTask): void {
    const { subject } = given;
    // A server that was away delivers a second time.
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

  /** Waits for a free worker: a pool may have taken the last one meanwhile. */
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

  /** Limits returns: each one counts as a delivery. Near the limit the task is kept until it can run. */
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
      if (!hasResult) this.#refuseOld(given, task);
      const why = hasResult ? undefined : otherVersion(task);
      if (why !== undefined) {
        announcements.clusterRefused.publish({ why });
        return given.nak(versionDelayMs(info.deliveryCount));
      }
      const outcome = hasResult
        ? undefined
        : info.deliveryCount > maxDeliveries
          ? this.#thrown(lost())
          : await this.#run(task);
      if (outcome !== undefined) {
        signer?.sign(outcome, result);
        await this.#keep(result, outcome);
        this.#remember(given);
      } else if (!hasResult) {
        if (this.#mayGiveBack(given)) return given.nak(giveBackMs);
        continue;
      }
      if (!this.#isOver) await given.ackAck().catch(() => {}); // else it comes again, with a result
      return;
    }
  }

  /** Throws `CLUSTER_REFUSED`, and deletes the task, when no member of this cluster has signed it. */
  #open(given: GivenTask): Buffer {
    const { signer } = this.#options.cluster;
    try {
      return verified(signer, given.data, given.subject);
    } catch (error) {
      given.term();
      throw error;
    }
  }

  /**
   * Throws `CLUSTER_REFUSED`, and deletes the task, when a signed one without a result was recorded and
   * stored again: it has run here, or was stored long after its time.
   */
  #refuseOld(given: GivenTask, task: Buffer): void {
    const { signer } = this.#options.cluster;
    if (signer === undefined) return;
    const storedMs = given.info.timestampNanos / nsPerMs;
    const seconds = Math.round((storedMs - (orderOf(task)?.time ?? storedMs)) / 1000);
    const isStale = Math.abs(seconds) * 1000 > maxAgeMs;
    if (!isStale && !this.#done.has(signatureOf(given.data))) return;
    given.term();
    if (isStale) this.#notify(signer, given, seconds);
    const stale = `a durable task was stored ${seconds} s after it was signed: it was sent again`;
    throw refused(
      isStale
        ? `${stale}, or the clocks of its caller and the NATS server differ`
        : 'a durable task was sent again after it had run here, and its result is gone',
    );
  }

  /** Notifies the caller, which would wait for ever. One that misses it stores the task again. */
  #notify(signer: Signer, { data, info }: GivenTask, seconds: number): void {
    if (!this.#notices.take()) return;
    const { connection, name } = this.#options.cluster;
    const subject = noticeSubject(name);
    const notice = { signature: signatureOf(data), seq: info.streamSequence, seconds };
    guarded(() => connection.publish(subject, writeNotice(signer, subject, notice)));
  }

  #remember(given: GivenTask): void {
    if (this.#options.cluster.signer === undefined) return;
    const [oldest] = this.#done.size < maxRemembered ? [] : this.#done.keys();
    if (oldest !== undefined) this.#done.delete(oldest);
    this.#done.add(signatureOf(given.data));
  }

  /** Returns whether a result exists. An unsigned one was put there without the secret, and is deleted. */
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

  /** Returns the pool for a task of this code. Workers that have loaded an older version end after their tasks. */
  #poolFor(code: readonly ModuleVersion[]): Pool {
    if (this.#loaded.add(code)) return this.#pool;
    const old = this.#pool;
    this.#oldPools.add(old);
    void old.close().finally(() => this.#oldPools.delete(old));
    this.#pool = new Pool({ size: { min: 0, max: this.#options.slots.count } });
    this.#loaded = new LoadedVersions();
    this.#loaded.add(code);
    return this.#pool;
  }

  /** Resolves with `undefined` when no worker could start the task here and now. */
  async #run(task: Buffer): Promise<Buffer | undefined> {
    const { cluster, modules } = this.#options;
    const { connection, signer } = cluster;
    try {
      const { order, call } = readTask(task);
      check(order, signer === undefined ? modules : undefined);
      const { name, timeoutMs, retry, target, code } = order;
      const options = { timeoutMs: timeoutMs ?? Infinity, retry };
      const bytes = await this.#poolFor(code)
        .with(options)
        .run(inWorker(name), call, target, signer !== undefined);
      this.#pauseMs = 0;
      this.#announced.delete('worker');
      if (bytes.byteLength > (connection.info?.max_payload ?? Infinity)) throw tooLarge(bytes);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    } catch (error) {
      if (hasCode(error, 'POOL_CLOSED')) return undefined;
      if (!hasCode(error, 'WORKER_START_FAILED')) return this.#thrown(error);
      this.#announce('worker', error);
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

  /**
   * Stores the result, which cost time, as soon as the server is back, unless this node has to end before.
   */
  async #keep(subject: string, outcome: Buffer): Promise<void> {
    let isKept: boolean | undefined;
    while (isKept !== true && !this.#isOver) {
      isKept = await this.#withStore(
        async (store) =>
          (await store.putResult(subject, outcome)) || (await this.#hasResult(store, subject)),
        'results',
      );
    }
  }

  get #isOver(): boolean {
    return this.#isLate || this.#options.cluster.connection.isClosed();
  }

  /** Stops taking tasks. Running ones have `drainTimeoutMs`; other nodes run the rest. */
  async close(drainTimeoutMs: number): Promise<void> {
    this.#isClosing = true;
    const late = async (): Promise<void> => {
      await wait(drainTimeoutMs, undefined, { ref: false });
      this.#isLate = true;
      await this.#destroyPools();
    };
    await Promise.race([Promise.all(this.#running), late()]);
    await this.#destroyPools();
  }

  async #destroyPools(): Promise<void> {
    await Promise.all([this.#pool, ...this.#oldPools].map((each) => each.destroy()));
  }
}

function lost(): CodedError {
  const message = `it was delivered ${maxDeliveries} times without an acknowledgement`;
  return new CodedError('WORKER_EXITED', `a durable task is given up: ${message}`);
}

function tooLarge({ byteLength }: Uint8Array): CodedError {
  const text = `the result of a durable task has ${byteLength} bytes, more than the NATS server takes`;
  const wayOut = 'write it somewhere and return where, or raise max_payload of the server';
  return new CodedError('BUS_TOO_LARGE', `${text}: ${wayOut}`);
}
