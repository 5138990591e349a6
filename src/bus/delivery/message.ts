// A message as a consumer gets it, and replies to it. Not here: its way to the consumer (bus.ts), and the
// requests that wait (requests.ts).

import { CodedError } from '../../errors.js';
import { announcements, integer, messageOf } from '../../lib/index.js';
import { noRequester, replyIntercepted } from '../errors.js';
import { busOptions } from '../options.js';
import {
  type BusHeaders,
  type DistinctBusHeaders,
  distinctHeaders,
  headersOf,
  joinedHeaders,
  type OutgoingBusHeaders,
} from './headers.js';

/** The end of a request. */
export type Outcome =
  | {
      readonly isDone: true;
      readonly body: unknown;
      readonly headers: OutgoingBusHeaders;
      /** Waits for a reply to the reply. */
      readonly waiter: Waiter | undefined;
    }
  | { readonly isDone: false; readonly error: CodedError };

/** A requester that waits for a reply; only the first one counts. */
export interface Waiter {
  /** Throws for a body that cannot travel: then it still waits. */
  settle(outcome: Outcome): void;
  /** Calls `callback` if it ends in another way: `settle` is without effect from then on. */
  whenGivenUp(callback: () => void): void;
}

/** As `settle`, for callers that cannot handle an error: a reply that cannot be sent is announced. */
export function trySettle(waiter: Waiter | undefined, address: string, outcome: Outcome): void {
  try {
    waiter?.settle(outcome);
  } catch (error) {
    announcements.busDropped.publish({ address, why: messageOf(error) });
  }
}

/** Identifies a publication that an uplink brought; the same in every loop. A sender's numbers grow. */
export interface Origin {
  readonly sender: string;
  readonly number: number;
}

/** A message on its way to a consumer. */
export interface Delivery {
  readonly address: string;
  readonly body: unknown;
  readonly headers: OutgoingBusHeaders;
  /** `undefined`: no requester waits. */
  readonly waiter: Waiter | undefined;
  /** True: for all consumers, not for one of them. */
  readonly isPublished: boolean;
  /** Choice of `SendOptions.local`, of a message that is sent in this loop. */
  readonly locality?: 'only' | 'prefer' | undefined;
  /** Set for a publication that an uplink brought. */
  readonly origin?: Origin | undefined;
  /** True: a consumer in the sender's loop gets this publication, whatever the uplink reaches. */
  readonly isReached?: boolean;
}

export interface ReplyOptions {
  readonly headers?: OutgoingBusHeaders | undefined;
  /** The name of the codec for the body. Default: that of its class, if there is one. */
  readonly codec?: string | undefined;
}

export interface ReplyRequestOptions extends ReplyOptions {
  /** Rejects with `BUS_TIMEOUT` after so long, in ms. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The body and headers of a message. */
export interface Content {
  readonly body: unknown;
  readonly headers: OutgoingBusHeaders;
}

/** A request that waits. */
export interface Asked extends Waiter {
  /** A reply; its body is of the type that the requester has declared. */
  readonly reply: Promise<BusMessage<never>>;
  /** Rejects `reply`, because the request could not be sent. */
  fail(error: unknown): void;
}

/** The bus on which a message arrived, as the message uses it. */
export interface Asker {
  readonly filters: {
    /** Works like `Filters.encode`, for a reply that no requester waits for. */
    encode(address: string, reply: Content, codec: string | undefined): Content;
    /** Works like `Filters.reply`. */
    reply(reply: Delivery, codec: string | undefined): Content | undefined;
  };
  /** Begins to wait for a reply. Throws `BUS_CLOSED`, `OPTION_INVALID`, `ABORTED`. */
  open(address: string, options: ReplyRequestOptions): Asked;
}

/** Limit of `fail`'s number, in both directions; as in Vert.x the two sides agree on its meaning. */
const maxFailureCode = 2 ** 31 - 1;

export class BusMessage<Body = unknown> {
  readonly address: string;
  readonly body: Body;
  /** Each header as one text; several values of a name are joined by `, `. */
  readonly headers: BusHeaders;
  readonly #given: OutgoingBusHeaders;
  readonly #waiter: Waiter | undefined;
  readonly #asker: Asker;
  #isAnswered = false;

  /** @internal */
  constructor(delivery: Delivery, asker: Asker) {
    const { address, headers, waiter } = delivery;
    const { body }: { readonly body: Body } = Object(delivery); // the type that the requester has declared
    this.address = address;
    this.body = body;
    this.headers = joinedHeaders(headers);
    this.#given = headers;
    this.#waiter = waiter;
    this.#asker = asker;
  }

  /** All values of each header. Pass it on as `headers` of another message to forward them. */
  get headersDistinct(): DistinctBusHeaders {
    return distinctHeaders(this.#given);
  }

  /** True: a requester waits, and no reply was given. */
  get isAwaited(): boolean {
    return this.#waiter !== undefined && !this.#isAnswered;
  }

  /**
   * Replies to a request; does nothing for other messages. Throws `BUS_REPLIED` the second time,
   * `BUS_CODEC_FAILED`, what an interceptor throws, or the error of a body that cannot travel: then no reply
   * was sent.
   */
  reply(body: unknown, options?: ReplyOptions): void {
    const given = busOptions('reply', options);
    this.#replyWith(body, given, undefined);
  }

  /** Replies by way of the filters; `waiter` waits for a reply to that. Throws as `reply`. */
  #replyWith(body: unknown, options: ReplyOptions, waiter: Waiter | undefined): void {
    this.#checkUnanswered();
    const { address } = this;
    const { filters } = this.#asker;
    const { codec } = options;
    const content = { body, headers: headersOf(options.headers) };
    if (this.#waiter === undefined) {
      filters.encode(address, content, codec);
      this.#isAnswered = true;
      return;
    }
    const sent = filters.reply({ address, ...content, waiter, isPublished: false }, codec);
    if (sent === undefined) this.#answer({ isDone: false, error: replyIntercepted(address) });
    else this.#answer({ isDone: true, body: sent.body, headers: sent.headers, waiter });
  }

  /**
   * Replies to a request, and waits for a reply to that. Rejects as `request` does, with `BUS_NO_HANDLERS`
   * where no requester waits, and with what `reply` throws.
   */
  async replyAndRequest(body: unknown, options?: ReplyRequestOptions): Promise<BusMessage> {
    const given = busOptions('replyAndRequest', options);
    if (this.#waiter === undefined) throw noRequester(this.address);
    const request = this.#asker.open(this.address, given);
    try {
      this.#replyWith(body, given, request);
    } catch (error) {
      request.fail(error);
    }
    return await request.reply;
  }

  /** Replies with a failure: the request rejects with `BUS_FAILED`. Throws as `reply` does. */
  fail(failureCode: number, message: string): void {
    integer('failureCode', failureCode, -maxFailureCode, maxFailureCode);
    const error = Object.assign(new CodedError('BUS_FAILED', message), { failureCode });
    this.#answer({ isDone: false, error });
  }

  /** Replies with the error that the handler threw; throws nothing. @internal */
  failWith(error: CodedError): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    trySettle(this.#waiter, this.address, { isDone: false, error });
  }

  #checkUnanswered(): void {
    if (!this.#isAnswered) return;
    const text = `a message to ${this.address} was answered before: answer each one once`;
    throw new CodedError('BUS_REPLIED', text);
  }

  #answer(outcome: Outcome): void {
    this.#checkUnanswered();
    this.#waiter?.settle(outcome);
    this.#isAnswered = true;
  }
}
