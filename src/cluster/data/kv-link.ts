// Calls on the buckets of one connection, each with a deadline. What the server surely has not done is tried again
// until then: it starts, elects a leader, or has lost a bucket. A write without an answer is not repeated, because
// another write may have followed it.

import { setTimeout as wait } from 'node:timers/promises';
import { CodedError } from '../../errors.js';
import { beforeDeadline, type Deferred, defer, messageOf, nowMs } from '../../lib/index.js';
import { timedOut } from '../../shared-data/index.js';
import type { Signer } from '../bus/signature.js';
import { clusterClosed, hasNoRoom, notDurable, refused } from '../errors.js';
import { follow } from '../nats/listen.js';
import type { NatsConnection } from '../nats/nats.js';
import { type Bucket, openBucket } from './kv.js';

export interface KvLinkOptions {
  readonly connection: NatsConnection;
  /** Name of the cluster. */
  readonly name: string;
  readonly signer: Signer | undefined;
}

export interface KvCall<Result> {
  readonly bucket: string;
  /** The call in errors. */
  readonly what: string;
  readonly timeoutMs: number;
  /** True: it changes something. */
  readonly isWrite: boolean;
  /** `leftMs`: time until the deadline. */
  readonly work: (bucket: Bucket, leftMs: number) => Promise<Result>;
}

const retryMs = 200;
/** Time that the end of a connection waits for answers, in ms. */
const answeredMs = 1000;
/** Refusals of a server with JetStream before giving up. It refuses for a moment while it starts. */
const maxRefusals = 5;

/** Error codes of the JetStream API (nats-server, server/errors.json). */
const wrongLastSequence: readonly unknown[] = [10071, 10164];
const streamNotFound = 10059;
/** The servers have no leader now, or the leader is another one: nothing was done. */
const noLeader: readonly unknown[] = [10008, 10009];

export class KvLink {
  readonly name: string;
  readonly signer: Signer | undefined;
  readonly #connection: NatsConnection;
  readonly #buckets = new Map<string, Promise<Bucket>>();
  /** Resolves when there is a connection; set while there is none. */
  #connected: Deferred<void> | undefined;
  readonly #reconnects = new Set<() => void>();
  /** Resolve when the server has answered. */
  readonly #working = new Set<Promise<void>>();
  /** Rejects with `lost` when the present connection is lost. */
  #lost = defer<never>();
  /** Rejects when the connection has ended for good. */
  readonly #ended: Promise<never>;

  constructor({ connection, name, signer }: KvLinkOptions) {
    this.#connection = connection;
    this.name = name;
    this.signer = signer;
    this.#ended = connection.closed().then(() => {
      throw clusterClosed();
    });
    this.#ended.catch(() => this.#resume());
    this.#lost.promise.catch(() => {});
    follow(connection, ({ type }) => {
      if (type === 'disconnect') this.#pause();
      else if (type === 'reconnect') this.#resume();
    });
  }

  #pause(): void {
    this.#connected ??= defer<void>();
    this.#lost.reject(lost);
    this.#lost = defer<never>();
    this.#lost.promise.catch(() => {});
  }

  #resume(): void {
    this.#connected?.resolve();
    this.#connected = undefined;
    for (const listener of this.#reconnects) listener();
  }

  /** Largest message that the server takes, in bytes; `undefined` while that is unknown. */
  get maxPayload(): number | undefined {
    return this.#connection.info?.max_payload;
  }

  /** Calls `listener` after each reconnection and at the end, until the returned function is called. */
  watchReconnects(listener: () => void): () => void {
    this.#reconnects.add(listener);
    return () => this.#reconnects.delete(listener);
  }

  /**
   * Rejects with `SHARED_DATA_TIMED_OUT`, `CLUSTER_CLOSED`, `CLUSTER_NOT_DURABLE`, `CLUSTER_CLIENT_MISSING`,
   * `CLUSTER_REFUSED`, and with `wrongLastSequence` errors of the client.
   */
  async call<Result>(call: KvCall<Result>): Promise<Result> {
    const { what, timeoutMs, isWrite } = call;
    const over = new AbortController();
    const startedAt = nowMs();
    const late = (ms: number): Error => {
      const hint = 'the NATS server is away or slow';
      return timedOut(what, ms, isWrite ? `${hint}, and may have done it` : hint);
    };
    const onDeadline = (): Error => late(timeoutMs);
    const work = Promise.race([this.#attempts(call, over.signal), this.#ended]);
    try {
      return await beforeDeadline(work, { deadlineMs: timeoutMs, onDeadline });
    } catch (error) {
      if (error === lost) throw unanswered(what);
      if (!isTimeout(error)) throw error;
      throw late(Math.min(timeoutMs, Math.ceil(nowMs() - startedAt))); // a limit of the client
    } finally {
      over.abort();
    }
  }

  /** Repeats the call until it succeeds or nobody waits any more. */
  async #attempts<Result>(call: KvCall<Result>, over: AbortSignal): Promise<Result> {
    const until = nowMs() + call.timeoutMs;
    for (let refusals = 0; ; ) {
      if (this.#connection.isClosed() || this.#connection.isDraining()) throw clusterClosed();
      await this.#connected?.promise;
      if (over.aborted) throw clusterClosed(); // nobody gets it
      let isSent = false;
      try {
        const bucket = await this.#open(call.bucket);
        if (over.aborted) throw clusterClosed();
        isSent = true;
        const work = this.#noted(call.work(bucket, Math.max(1, until - nowMs())));
        return await Promise.race([work, this.#lost.promise]);
      } catch (error) {
        const { info } = this.#connection;
        if (isNotThere(error)) {
          this.#buckets.delete(call.bucket);
          if (info !== undefined) refusals += info.jetstream === true ? 1 : maxRefusals;
          if (refusals >= maxRefusals) throw notDurable(error, 'shared data');
        } else if (isLeaderless(error)) {
          // they elect one
        } else if (!isTimeout(error) || (isSent && call.isWrite)) {
          throw this.#translated(error, call.what);
        }
      }
      await wait(retryMs, undefined, { ref: false });
    }
  }

  #noted<Result>(work: Promise<Result>): Promise<Result> {
    const settled = work.then(
      () => {},
      () => {},
    );
    this.#working.add(settled);
    void settled.then(() => this.#working.delete(settled));
    return work;
  }

  /**
   * Resolves when the server has answered what was sent, given up or not: a watch that is opened while its connection
   * is closed keeps its timers for ever. Takes no longer than a second.
   */
  async answered(): Promise<void> {
    const onDeadline = (): Error => new Error('the NATS server is slow');
    const answered = Promise.all(this.#working);
    await beforeDeadline(answered, { deadlineMs: answeredMs, onDeadline }).catch(() => {});
  }

  #translated(error: unknown, what: string): unknown {
    if (error instanceof CodedError || isTimeout(error) || isConflict(error)) return error;
    if (this.#connection.isClosed() || this.#connection.isDraining()) return clusterClosed();
    if (hasNoRoom(error)) return notDurable(error, what);
    return refused(`the NATS server refuses ${what}: ${messageOf(error)}`, error);
  }

  #open(name: string): Promise<Bucket> {
    const known = this.#buckets.get(name);
    if (known !== undefined) return known;
    const opened = openBucket(this.#connection, name);
    this.#buckets.set(name, opened);
    opened.catch(() => this.#buckets.delete(name));
    return opened;
  }
}

/** Stands for an answer that cannot come any more. */
const lost = new Error('the connection was lost');

function unanswered(what: string): CodedError {
  const why = `${what} got no answer, because the connection to the NATS server was lost`;
  const wayOut = 'the server may have done it: read before you write again';
  return new CodedError('SHARED_DATA_TIMED_OUT', `${why}: ${wayOut}`);
}

function codeOf(error: unknown): unknown {
  return Reflect.get(Object(error), 'code');
}

/** Returns true when the entry had another revision. */
export function isConflict(error: unknown): boolean {
  return wrongLastSequence.includes(codeOf(error));
}

/** Returns true when the stream of the bucket, or JetStream, does not exist now: nothing was done. */
function isNotThere(error: unknown): boolean {
  if (codeOf(error) === streamNotFound) return true;
  const name = error instanceof Error ? error.name : '';
  return /^(JetStreamNotEnabled|NoResponders|StreamNotFoundError)/.test(name);
}

function isLeaderless(error: unknown): boolean {
  return noLeader.includes(codeOf(error));
}

/** Returns true when no answer came in time, or the connection was lost meanwhile. */
function isTimeout(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof CodedError) return false;
  if (error === lost || error.name === 'TimeoutError') return true;
  return error.name === 'RequestError' && isTimeout(error.cause);
}
