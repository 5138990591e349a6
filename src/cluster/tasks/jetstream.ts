// Durable tasks in JetStream, which is part of NATS. A stream of tasks gives each task to one node and
// deletes it after the acknowledgement; another stream has the results. The JetStream client is an optional
// peer, like the NATS client. Not here: the content of tasks and results (task-frames.ts).

import { CodedError, hasCode } from '../../errors.js';
import { messageOf, prototypeRemedy } from '../../lib/index.js';
import { hasNoRoom, isSubjectFull, notDurable } from '../errors.js';
import type { NatsConnection } from '../nats/nats.js';
import { tokensOf } from '../nats/subjects.js';
import { parseJetStreamClient } from '../protocol.js';

// The part of the client that is used here; see nats.ts.

/** A task that this node has exclusively, as long as it calls `working()` in time. */
export interface GivenTask {
  readonly subject: string;
  readonly data: Uint8Array;
  /** `timestampNanos`: time of storing by the clock of the server. */
  readonly info: {
    readonly deliveryCount: number;
    readonly streamSequence: number;
    readonly timestampNanos: number;
  };
  /** Resolves when the server has confirmed the acknowledgement. */
  ackAck(): Promise<boolean>;
  /** Gives the task back: another node may get it after `delayMs`. */
  nak(delayMs?: number): void;
  /** Extends the ownership of the task: it is still running. */
  working(): void;
  /** Deletes the task: no node gets it again. */
  term(): void;
}

interface PublishOptions {
  readonly expect: { readonly lastSubjectSequence: number };
}

interface JetStream {
  publish(subject: string, bytes: Uint8Array, options?: PublishOptions): Promise<{ seq: number }>;
  readonly consumers: {
    get(
      stream: string,
      consumer: string,
    ): Promise<{
      next(options: { readonly expires: number }): Promise<GivenTask | null>;
    }>;
  };
}

interface StoredResult {
  readonly seq: number;
  readonly data: Uint8Array;
}

interface JetStreamManager {
  readonly streams: {
    add(config: object): Promise<unknown>;
    deleteMessage(stream: string, seq: number): Promise<boolean>;
    getMessage(
      stream: string,
      query: { readonly last_by_subj: string },
    ): Promise<StoredResult | null>;
  };
  readonly consumers: { add(stream: string, config: object): Promise<unknown> };
}

export interface JetStreamClient {
  jetstream(connection: NatsConnection): JetStream;
  jetstreamManager(connection: NatsConnection): Promise<JetStreamManager>;
}

const clientName: string = '@nats-io/jetstream';
const consumer = 'nodes';
/** Storage time of tasks and results: a week. */
export const keptMs = 7 * 24 * 3600 * 1000;
/** Delay before a returned task is given to a node again, in ms. */
export const giveBackMs = 1000;
/** Time without a `working()` after which a node loses its task. */
export const silentMs = 6000;
/** Duration of one pull request before the next one. */
const pullMs = 5000;
const nsPerMs = 1e6;

/** Error codes of the JetStream API (nats-server, server/errors.json). */
const apiError = Object.freeze({
  streamDiffers: 10058,
  wrongLastSequence: 10071,
  consumerDiffers: 10148,
});

/** Subjects of a task and of its result. */
export interface TaskSubjects {
  readonly task: string;
  readonly result: string;
}

/** Returns the subjects of the task `id`. Throws `OPTION_INVALID` for an id that is too long. */
export function taskSubjects(name: string, id: string): TaskSubjects {
  const tokens = tokensOf(id);
  return { task: `${name}.tasks.${tokens}`, result: `${name}.results.${tokens}` };
}

/** Returns the subject of the result for a task at the subject `task`. */
export function resultSubject(name: string, task: string): string {
  return `${name}.results${task.slice(`${name}.tasks`.length)}`;
}

export class TaskStore {
  readonly #stream: JetStream;
  readonly #manager: JetStreamManager;
  readonly #name: string;

  private constructor(stream: JetStream, manager: JetStreamManager, name: string) {
    this.#stream = stream;
    this.#manager = manager;
    this.#name = name;
  }

  /**
   * Creates the streams that do not exist yet; existing streams with other options stay as they are.
   * Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_NOT_DURABLE`.
   */
  static async open(connection: NatsConnection, name: string): Promise<TaskStore> {
    const client = await loadClient();
    try {
      const manager = await client.jetstreamManager(connection);
      const { streams, consumers } = manager;
      // One message for each id; a second one is refused, so the first cannot be overwritten.
      const kept = {
        storage: 'file',
        max_age: keptMs * nsPerMs,
        max_msgs_per_subject: 1,
        discard: 'new',
        discard_new_per_subject: true,
      };
      await unlessDifferent(
        streams.add({
          ...kept,
          name: `${name}-tasks`,
          subjects: [`${name}.tasks.>`],
          retention: 'workqueue',
        }),
      );
      await unlessDifferent(
        streams.add({ ...kept, name: `${name}-results`, subjects: [`${name}.results.>`] }),
      );
      await unlessDifferent(
        consumers.add(`${name}-tasks`, {
          durable_name: consumer,
          ack_policy: 'explicit',
          ack_wait: silentMs * nsPerMs,
          max_ack_pending: -1,
        }),
      );
      return new TaskStore(client.jetstream(connection), manager, name);
    } catch (cause) {
      const isMissing = cause instanceof Error && cause.name === 'JetStreamNotEnabled';
      throw isMissing || isRefusal(cause) ? notDurable(cause) : cause; // else the server may be away
    }
  }

  /**
   * Resolves with the sequence number once it is stored; with `undefined` when a task of this id waits
   * already. Rejects with `CLUSTER_NOT_DURABLE` when the server has no room.
   */
  async putTask(subject: string, task: Uint8Array): Promise<number | undefined> {
    try {
      return (await this.#stream.publish(subject, task)).seq;
    } catch (error) {
      if (isSubjectFull(error)) return undefined;
      throw hasNoRoom(error) ? notDurable(error, 'a durable task') : error;
    }
  }

  /** Deletes a task; a node that already runs it continues. */
  async removeTask(seq: number): Promise<void> {
    await this.#manager.streams.deleteMessage(`${this.#name}-tasks`, seq);
  }

  /**
   * Resolves with false when a result exists already, which then stays. Rejects with `CLUSTER_NOT_DURABLE` when the
   * server has no room.
   */
  async putResult(subject: string, result: Uint8Array): Promise<boolean> {
    try {
      await this.#stream.publish(subject, result, { expect: { lastSubjectSequence: 0 } });
      return true;
    } catch (error) {
      if (codeOf(error) === apiError.wrongLastSequence || isSubjectFull(error)) return false;
      throw hasNoRoom(error) ? notDurable(error, 'the result of a durable task') : error;
    }
  }

  async removeResult(seq: number): Promise<void> {
    await this.#manager.streams.deleteMessage(`${this.#name}-results`, seq);
  }

  async result(subject: string): Promise<StoredResult | undefined> {
    const query = { last_by_subj: subject };
    const kept = await this.#manager.streams.getMessage(`${this.#name}-results`, query);
    return kept ?? undefined;
  }

  /** Returns a task that no node runs; `undefined` when none came within the pull time. */
  async nextTask(): Promise<GivenTask | undefined> {
    const nodes = await this.#stream.consumers.get(`${this.#name}-tasks`, consumer);
    return (await nodes.next({ expires: pullMs })) ?? undefined;
  }
}

async function loadClient(): Promise<JetStreamClient> {
  let client: unknown;
  try {
    client = await import(clientName);
  } catch (cause) {
    const wayOut = prototypeRemedy(cause) ?? `npm install ${clientName}`;
    const message = `durable tasks need the client of JetStream (${messageOf(cause)}): ${wayOut}`;
    throw new CodedError('CLUSTER_CLIENT_MISSING', message, { cause });
  }
  return parseJetStreamClient(client);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? Reflect.get(error, 'code') : undefined;
}

async function unlessDifferent(adding: Promise<unknown>): Promise<void> {
  try {
    await adding;
  } catch (error) {
    const code = codeOf(error);
    if (code !== apiError.streamDiffers && code !== apiError.consumerDiffers) throw error;
  }
}

/** Returns true when JetStream itself answered with a refusal, or does not exist. */
export function isRefusal(error: unknown): boolean {
  return hasCode(error, 'CLUSTER_NOT_DURABLE') || typeof codeOf(error) === 'number';
}
