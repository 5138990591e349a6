// The durable tasks of a worker: while a host is free it asks JetStream for one, runs it there, keeps the
// result and only then says that it is done. A worker that is lost says nothing, and the task goes to another.
// Not here: lending hosts to pools (worker.ts), what the host does (task-entry.ts).

import { setTimeout as wait } from 'node:timers/promises';
import { task } from '../context/index.js';
import { CodedError, hasCode } from '../errors.js';
import { announcements, messageOf } from '../internal/index.js';
import { Pool } from '../pool/index.js';
import { refused } from './errors.js';
import type { TaskOptions } from './hosts.js';
import { type GivenTask, keptMs, silentMs, TaskStore } from './jetstream.js';
import { guarded } from './listen.js';
import { sealBytes } from './protocol.js';
import { opened } from './seal.js';
import type { Slots } from './slots.js';
import type { runTask } from './task-entry.js';
import { readTask, type TaskOrder, writeOutcome } from './task-frames.js';
import { ClusterValues } from './values.js';

const beatMs = silentMs / 4;
const retryMs = 1000;
/** A task that was given out so often, and never done, is one that workers do not survive. */
const mostDeliveries = 20;

const entry = new URL('./task-entry.js', import.meta.url);

/** In a host, which imports it: a worker has nothing of a task in it. */
function inHost(name: string): typeof runTask {
  return Object.defineProperty(task<typeof runTask>(entry, 'runTask'), 'name', { value: name });
}

export interface TaskWorkerOptions {
  readonly cluster: TaskOptions;
  readonly slots: Slots;
  /** Without a secret tasks may call what these modules export, and nothing else. */
  readonly modules: ReadonlySet<string>;
}

export class TaskWorker {
  readonly #options: TaskWorkerOptions;
  readonly #store: TaskStore;
  readonly #pool: Pool;
  readonly #values: ClusterValues;
  readonly #running = new Set<Promise<void>>();
  #isClosing = false;

  private constructor(options: TaskWorkerOptions, store: TaskStore) {
    this.#options = options;
    this.#store = store;
    this.#pool = new Pool({ size: { min: 0, max: options.slots.count } });
    this.#values = new ClusterValues(options.cluster.seal !== undefined);
    void this.#pull();
  }

  /** Takes tasks from now on. Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_NOT_DURABLE`. */
  static async start(options: TaskWorkerOptions): Promise<TaskWorker> {
    const { connection, name } = options.cluster;
    return new TaskWorker(options, await TaskStore.open(connection, name));
  }

  /** Tasks that run now. */
  get running(): number {
    return this.#running.size;
  }

  async #pull(): Promise<void> {
    const { cluster, slots } = this.#options;
    while (!this.#isClosing && !cluster.connection.isClosed()) {
      await slots.free();
      if (this.#isClosing) return;
      const given = await this.#next();
      if (given !== undefined) this.#take(given);
    }
  }

  async #next(): Promise<GivenTask | undefined> {
    try {
      return await this.#store.nextTask();
    } catch {
      await wait(retryMs); // the server is away, or JetStream starts
      return undefined;
    }
  }

  #take(given: GivenTask): void {
    const { slots } = this.#options;
    if (this.#isClosing || !slots.take()) {
      guarded(() => given.nak()); // a pool was faster
      return;
    }
    const beat = setInterval(() => guarded(() => given.working()), beatMs);
    const running = this.#work(given)
      .catch((error: unknown) => announcements.clusterRefused.publish({ why: messageOf(error) }))
      .finally(() => {
        clearInterval(beat);
        this.#running.delete(running);
        slots.giveBack();
      });
    this.#running.add(running);
  }

  async #work(given: GivenTask): Promise<void> {
    const { subject, info } = given;
    const { connection, name, seal } = this.#options.cluster;
    const resultSubject = `${name}.results${subject.slice(`${name}.tasks`.length)}`;
    const task = this.#open(given);
    if (!(await this.#hasResult(resultSubject))) {
      const outcome =
        info.deliveryCount > mostDeliveries ? this.#thrown(lost()) : await this.#run(task);
      if (outcome === undefined) return given.nak();
      seal?.seal(outcome, resultSubject);
      await this.#keep(resultSubject, outcome);
    }
    if (!connection.isClosed()) await given.ackAck();
  }

  /** Throws `CLUSTER_REFUSED` for what nobody of this cluster has asked for, and nobody gets it again. */
  #open(given: GivenTask): Buffer {
    const { seal } = this.#options.cluster;
    try {
      return opened(seal, given.data, given.subject);
    } catch (error) {
      given.term();
      throw error;
    }
  }

  async #hasResult(subject: string): Promise<boolean> {
    const { seal } = this.#options.cluster;
    const kept = await this.#store.result(subject);
    if (kept === undefined) return false;
    try {
      opened(seal, kept, subject);
      return true;
    } catch {
      return false; // somebody has put it there, without the secret
    }
  }

  /** `undefined`: it was not done, and somebody else should. */
  async #run(task: Buffer): Promise<Buffer | undefined> {
    const { cluster, modules } = this.#options;
    const { connection, seal } = cluster;
    try {
      const { order, call } = readTask(task);
      check(order, seal === undefined ? modules : undefined);
      const { name, timeoutMs, retry, target } = order;
      const options = { timeoutMs: timeoutMs ?? Infinity, retry };
      const bytes = await this.#pool
        .with(options)
        .run(inHost(name), call, target, seal !== undefined);
      if (bytes.byteLength > (connection.info?.max_payload ?? Infinity)) throw tooLarge(bytes);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    } catch (error) {
      return this.#isClosing && hasCode(error, 'POOL_CLOSED') ? undefined : this.#thrown(error);
    }
  }

  #thrown(error: unknown): Buffer {
    const { seal } = this.#options.cluster;
    return writeOutcome(true, this.#values.encodeThrown(error), seal === undefined ? 0 : sealBytes);
  }

  /** It has cost time: it is not given up while there is a connection, or one may come back. */
  async #keep(subject: string, outcome: Buffer): Promise<void> {
    const { connection } = this.#options.cluster;
    while (!connection.isClosed()) {
      try {
        if (await this.#store.putResult(subject, outcome)) return;
        if (!(await this.#hasResult(subject))) await this.#store.replaceResult(subject, outcome);
        return;
      } catch {
        await wait(retryMs);
      }
    }
  }

  /** Takes no more. What runs may take so long, in ms; then others do it. */
  async close(drainTimeoutMs: number): Promise<void> {
    this.#isClosing = true;
    const deadline = setTimeout(() => void this.#pool.destroy(), drainTimeoutMs);
    await Promise.all(this.#running);
    clearTimeout(deadline);
    await this.#pool.destroy();
  }
}

/** Throws for a task that is not to be run. `modules`: those alone may be called. */
function check({ time, target }: TaskOrder, modules: ReadonlySet<string> | undefined): void {
  if (Date.now() - time > keptMs) throw refused('a durable task is older than a week');
  if (modules === undefined || (target !== null && modules.has(target.url))) return;
  const what = target === null ? 'a function' : `${target.exportName} of ${target.url}`;
  const wayOut = 'without a secret it runs exports of modules that it was given, see task()';
  throw new CodedError('CLUSTER_UNSIGNED', `a worker was asked for ${what}: ${wayOut}`);
}

function lost(): CodedError {
  const message = `${mostDeliveries} workers were given it, and none has said that it is done`;
  return new CodedError('HOST_EXITED', `a durable task is given up: ${message}`);
}

function tooLarge({ byteLength }: Uint8Array): CodedError {
  const text = `the result of a durable task has ${byteLength} bytes, more than the NATS server takes`;
  const wayOut = 'write it somewhere and return where, or raise max_payload of the server';
  return new CodedError('BUS_TOO_LARGE', `${text}: ${wayOut}`);
}
