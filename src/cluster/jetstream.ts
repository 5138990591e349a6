// Durable tasks in JetStream, which belongs to NATS: a stream of what is to be done, from which each task goes
// to one node and is gone once that one has acknowledged it, and a stream of results. Its client is an
// optional peer like that of NATS. Not here: what tasks and results say (task-frames.ts).

import { CodedError, hasCode } from '../errors.js';
import { messageOf, prototypeRemedy } from '../internal/index.js';
import { notDurable } from './errors.js';
import type { NatsConnection } from './nats.js';
import { parseJetStreamClient } from './protocol.js';
import { tokensOf } from './subjects.js';

// What is used of the client; see nats.ts.

/** A task that was given to this node, and to no other while it says that it works on it. */
export interface GivenTask {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly info: { readonly deliveryCount: number };
  /** Resolves when the server has heard that it is done. */
  ackAck(): Promise<boolean>;
  /** Somebody else, please, after so long in ms. */
  nak(delayMs?: number): void;
  /** It is being worked on. */
  working(): void;
  /** Nobody, ever. */
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
/** Tasks and results are kept for so long: a week. */
export const keptMs = 7 * 24 * 3600 * 1000;
/** A node of which nothing was heard for so long has lost its task. */
export const silentMs = 6000;
/** How long a node asks for a task before it asks again. */
const pullMs = 5000;
const nsPerMs = 1e6;

/** Of JetStream's API (nats-server, server/errors.json). */
const apiError = Object.freeze({
  streamDiffers: 10058,
  wrongLastSequence: 10071,
  subjectIsFull: 10077,
  consumerDiffers: 10148,
});

/** Where a task lies, and its result. */
export interface TaskSubjects {
  readonly task: string;
  readonly result: string;
}

/** Of the task `id`. Throws `OPTION_INVALID` for one that is too long. */
export function taskSubjects(name: string, id: string): TaskSubjects {
  const tokens = tokensOf(id);
  return { task: `${name}.tasks.${tokens}`, result: `${name}.results.${tokens}` };
}

/** Where the result of a task goes that lies at `task`. */
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
   * Makes what is not there yet; streams that somebody has made otherwise are left as they are. Rejects with
   * `CLUSTER_CLIENT_MISSING`, `CLUSTER_NOT_DURABLE`.
   */
  static async open(connection: NatsConnection, name: string): Promise<TaskStore> {
    const client = await loadClient();
    try {
      const manager = await client.jetstreamManager(connection);
      const { streams, consumers } = manager;
      // One message for each id, and a second is refused: nobody can overwrite the first.
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
      throw isMissing || isRefusal(cause) ? notDurable(cause) : cause; // the server may be away
    }
  }

  /** Resolves with its number once it is kept; with `undefined` where one of this id waits already. */
  async putTask(subject: string, task: Uint8Array): Promise<number | undefined> {
    try {
      return (await this.#stream.publish(subject, task)).seq;
    } catch (error) {
      if (codeOf(error) === apiError.subjectIsFull) return undefined;
      throw error;
    }
  }

  /** Nobody does it, unless somebody does already. */
  async removeTask(seq: number): Promise<void> {
    await this.#manager.streams.deleteMessage(`${this.#name}-tasks`, seq);
  }

  /** Resolves with false where there is a result already, which stays. */
  async putResult(subject: string, result: Uint8Array): Promise<boolean> {
    try {
      await this.#stream.publish(subject, result, { expect: { lastSubjectSequence: 0 } });
      return true;
    } catch (error) {
      const code = codeOf(error);
      if (code === apiError.wrongLastSequence || code === apiError.subjectIsFull) return false;
      throw error;
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

  /** A task that nobody works on; `undefined` when none came for some time. */
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

/** JetStream itself has answered, and refuses; or there is none. */
export function isRefusal(error: unknown): boolean {
  return hasCode(error, 'CLUSTER_NOT_DURABLE') || typeof codeOf(error) === 'number';
}
