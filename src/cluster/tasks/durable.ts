// Durable tasks as the caller sees them: calls that outlive their caller. A task is stored in JetStream,
// some node runs it, and the result is published. A caller that missed the message reads the stored result.
// Not here: storage (jetstream.ts), the nodes that run tasks (task-runner.ts).

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { ByteReader } from '../../channels/index.js';
import {
  type AnyFunction,
  importVersion,
  type ModuleVersion,
  moduleIn,
  type TaskTarget,
  taskTarget,
} from '../../context/index.js';
import { CodedError, hasCode } from '../../errors.js';
import { abortError, type Deferred, defer, unwatchAbort, watchAbort } from '../../lib/index.js';
import type { DurableOptions } from '../../worker/index.js';
import { clocksDiffer, verified } from '../bus/signature.js';
import { ClusterValues, type EncodedValue } from '../bus/values.js';
import { clusterClosed, hasNoRoom, notDurable } from '../errors.js';
import { follow, guarded, listen } from '../nats/listen.js';
import type { NatsConnection, NatsMessage, NatsSubscription } from '../nats/nats.js';
import { protocolVersion, signatureBytes } from '../protocol.js';
import { isRefusal, TaskStore, type TaskSubjects, taskSubjects } from './jetstream.js';
import { noticeSubject, readNotice, signatureOf, type TaskNotice } from './refused-tasks.js';
import { writeTask } from './task-frames.js';
import type { TaskOptions } from './task-options.js';

const retryMs = 1000;
/** Refusals before giving up. JetStream refuses for a moment while it starts or elects a leader. */
const maxRefusals = 5;
/** Period after which a task without a result is put and read again, in ms. */
const againMs = 60_000;

interface Waiting {
  readonly subjects: TaskSubjects;
  /** Returns the task with the time of now, signed: nodes refuse one that is stored long after its time. */
  readonly frame: () => Buffer;
  /** Result without its signature. */
  readonly outcome: Deferred<Buffer>;
  /** Sequence number in the stream of tasks, once the task is stored from here. */
  seq: number | undefined;
  /** By signature: sequence numbers of its signed frames, once the server has answered. */
  readonly puts: Map<string, Promise<number | undefined>>;
  /** True once the task, or its result, was seen in its stream. */
  isStored: boolean;
}

export class DurableTasks {
  readonly #cluster: TaskOptions;
  readonly #values: ClusterValues;
  readonly #waiting = new Set<Waiting>();
  #store: Promise<TaskStore> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Notices about refused tasks, while tasks wait. */
  #notices: NatsSubscription | undefined;
  #isPuttingAgain = false;

  constructor(cluster: TaskOptions) {
    this.#cluster = cluster;
    this.#values = new ClusterValues(cluster.signer !== undefined, { ownsCode: true });
    follow(cluster.connection, ({ type }) => {
      if (type === 'reconnect') void this.#putAgain();
    });
    void cluster.connection.closed().then(() => {
      for (const { outcome } of this.#waiting) outcome.reject(clusterClosed());
    });
  }

  /**
   * Runs `fn` with the values that it captures at the call. Rejects with the error that `fn` threw, and
   * with `CLUSTER_NOT_DURABLE`, `CLUSTER_CLIENT_MISSING`, `CLUSTER_UNSIGNED`, `CLUSTER_CLOSED`,
   * `BUS_TOO_LARGE`, `OPTION_INVALID`, `TRANSFER_…`.
   */
  async run(fn: AnyFunction, args: unknown[], options: DurableOptions): Promise<unknown> {
    const { connection, name, signer } = this.#cluster;
    if (connection.isClosed()) throw clusterClosed();
    const { id, timeoutMs, retry } = options;
    const subjects = taskSubjects(name, id ?? randomUUID());
    const target = taskTarget(fn) ?? null;
    const order = {
      protocol: protocolVersion,
      name: target?.exportName ?? fn.name,
      timeoutMs: Number.isFinite(timeoutMs) ? timeoutMs : null,
      retry,
      target,
    };
    const value = this.#values.encode(target === null ? [fn, args] : args);
    const code = codeOf(target, value);
    const frame = (): Buffer => {
      const tailBytes = signer === undefined ? 0 : signatureBytes;
      const bytes = writeTask({ ...order, code, time: Date.now() }, value, tailBytes);
      signer?.sign(bytes, subjects.task);
      return bytes;
    };
    checkSize(frame(), connection);
    return await this.#read(await this.#outcomeOf(subjects, frame, options));
  }

  async #outcomeOf(
    subjects: TaskSubjects,
    frame: Waiting['frame'],
    { id, signal }: DurableOptions,
  ): Promise<Buffer> {
    const { connection } = this.#cluster;
    const none = { seq: undefined, isStored: false };
    const waiting: Waiting = { subjects, frame, outcome: defer(), ...none, puts: new Map() };
    const { promise, reject } = waiting.outcome;
    const onAbort = (): void => reject(abortError(signal));
    if (signal !== undefined) watchAbort(signal, onAbort);
    this.#waiting.add(waiting);
    const onResult = ({ data }: NatsMessage): void => void this.#take(waiting, data);
    const subscription = listen(connection, subjects.result, onResult, { onError: reject });
    this.#listenForNotices();
    const put = this.#put(waiting, id !== undefined);
    put.catch(reject);
    this.#timer ??= setInterval(() => void this.#putAgain(), againMs).unref();
    try {
      return await promise;
    } catch (error) {
      // With an id of its own the task stays: the caller may ask for it again.
      if (id === undefined) void put.then(() => this.#remove(waiting)).catch(() => {});
      throw error;
    } finally {
      if (signal !== undefined) unwatchAbort(signal, onAbort);
      this.#waiting.delete(waiting);
      if (this.#waiting.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
        if (!connection.isClosed()) this.#notices?.unsubscribe();
        this.#notices = undefined;
      }
      if (!connection.isClosed()) subscription.unsubscribe();
    }
  }

  #listenForNotices(): void {
    const { connection, name, signer } = this.#cluster;
    if (signer === undefined) return;
    const subject = noticeSubject(name);
    const onMessage = ({ data }: NatsMessage): void => {
      void this.#refused(readNotice(signer, subject, data));
    };
    this.#notices ??= listen(connection, subject, onMessage);
  }

  /** Rejects the task that a notice is about, if the frame there is the one that this caller has stored. */
  async #refused({ signature, seq, seconds }: TaskNotice): Promise<void> {
    for (const { puts, outcome } of this.#waiting) {
      const put = puts.get(signature);
      if (put === undefined || (await put.catch(() => undefined)) !== seq) continue;
      outcome.reject(clocksDiffer('a durable task', 'the NATS server', seconds));
    }
  }

  /** Returns true for a signed result. Anything else is announced as refused, and the wait goes on. */
  #take({ subjects, outcome }: Waiting, signed: Uint8Array): boolean {
    let isSound = false;
    guarded(() => {
      outcome.resolve(verified(this.#cluster.signer, signed, subjects.result));
      isSound = true;
    });
    return isSound;
  }

  async #openStore(): Promise<TaskStore> {
    const { connection, name } = this.#cluster;
    this.#store ??= TaskStore.open(connection, name);
    return await this.#store;
  }

  /**
   * Retries until the task is stored or has a result. Rejects with `CLUSTER_NOT_DURABLE`, `CLUSTER_CLOSED`.
   */
  async #put(waiting: Waiting, mayBeDone: boolean): Promise<void> {
    for (let refusals = 0; this.#waiting.has(waiting); ) {
      try {
        await this.#tryPut(waiting, mayBeDone);
        return;
      } catch (error) {
        const { connection } = this.#cluster;
        if (connection.isDraining() || connection.isClosed()) throw clusterClosed();
        if (hasCode(error, 'CLUSTER_CLIENT_MISSING')) throw error;
        if (waiting.isStored && hasNoRoom(Object(error).cause)) return; // it is there, unless the server lost it
        this.#store = undefined; // the streams may be gone
        const { info } = connection;
        if (isRefusal(error) && info !== undefined) refusals += info.jetstream ? 1 : maxRefusals;
        if (refusals >= maxRefusals) throw notDurable(error);
      }
      await wait(retryMs);
    }
  }

  async #tryPut(waiting: Waiting, mayBeDone: boolean): Promise<void> {
    const { subjects, frame } = waiting;
    const store = await this.#openStore();
    if (mayBeDone) {
      const kept = await store.result(subjects.result);
      if (kept !== undefined && this.#take(waiting, kept.data)) return;
    }
    const bytes = frame();
    const put = store.putTask(subjects.task, bytes);
    const signature = signatureOf(bytes);
    waiting.puts.set(signature, put);
    const seq = await put.catch((error: unknown) => {
      waiting.puts.delete(signature);
      throw error;
    });
    waiting.isStored = true;
    if (seq === undefined) waiting.puts.delete(signature);
    else waiting.seq = seq;
  }

  async #remove({ seq }: Waiting): Promise<void> {
    if (seq !== undefined) await (await this.#openStore()).removeTask(seq);
  }

  /** Puts every waiting task again: a result may have been missed, or the server has lost its data. */
  async #putAgain(): Promise<void> {
    if (this.#isPuttingAgain) return;
    this.#isPuttingAgain = true;
    for (const waiting of this.#waiting) {
      await this.#put(waiting, true).catch(waiting.outcome.reject);
    }
    this.#isPuttingAgain = false;
  }

  async #read(outcome: Buffer): Promise<unknown> {
    const reader = new ByteReader(outcome);
    const hasThrown = reader.u8() !== 0;
    const read = await new Promise<() => unknown>((resolve) => {
      this.#values.reader().receive(reader, resolve);
    });
    const value = read();
    if (hasThrown) throw value;
    return value;
  }
}

/** Returns the modules that a task imports by name, with their versions here; those of Node have none. */
function codeOf(target: TaskTarget | null, { definitions }: EncodedValue): ModuleVersion[] {
  const url = target?.url ?? '';
  const ofTarget = { specifier: url, parent: '', version: importVersion(url, '') };
  const imports = definitions.flatMap(({ bytes }) => moduleIn(bytes) ?? []);
  return [ofTarget, ...imports].flatMap(({ specifier, parent, version }) =>
    version === undefined ? [] : [{ specifier, parent, version }],
  );
}

/** Throws `BUS_TOO_LARGE`. */
function checkSize({ byteLength }: Buffer, { info }: NatsConnection): void {
  if (info === undefined || byteLength <= info.max_payload) return;
  const text = `a durable task has ${byteLength} bytes, and the NATS server takes ${info.max_payload}`;
  const wayOut = 'give it a path or a key, or raise max_payload of the server';
  throw new CodedError('BUS_TOO_LARGE', `${text}: ${wayOut}`);
}
