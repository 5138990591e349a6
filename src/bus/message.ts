// What a consumer gets, and how it answers. Not here: how a message came, and who waits (bus.ts).

import { CodedError } from '../errors.js';
import { announcements, integer, invalid, messageOf } from '../internal/index.js';
import { nobodyWaits } from './errors.js';

/** Names are compared as they are written. */
export type BusHeaders = Readonly<Record<string, string>>;

/** Of all that were sent without. */
export const noHeaders: BusHeaders = Object.freeze({});

/** Names the codec of a body (codecs.ts). */
export const codecHeader = 'manycore-codec';

/** What was given, once and for all. Throws `OPTION_INVALID`. */
export function headersOf(given: BusHeaders | undefined): BusHeaders {
  if (given === undefined) return noHeaders;
  for (const [name, value] of Object.entries(given)) {
    if (typeof value !== 'string') throw invalid(`headers.${name}`, value, 'a text');
    if (name === codecHeader)
      throw invalid('headers', name, 'names other than this, which is ours');
  }
  return Object.freeze({ ...given });
}

/** How a request ended. */
export type Outcome =
  | {
      readonly isDone: true;
      readonly body: unknown;
      readonly headers: BusHeaders;
      /** Who waits for an answer to the answer. */
      readonly waiter: Waiter | undefined;
    }
  | { readonly isDone: false; readonly error: CodedError };

/** Who waits for an answer; only the first one counts. */
export interface Waiter {
  /** Throws for a body that cannot travel: then it is still waited for. */
  settle(outcome: Outcome): void;
  /** Called once nobody waits any more, for whatever reason. */
  whenOver(callback: () => void): void;
}

/** As `settle`, where nobody is left to hear that it did not work: an answer that cannot be sent is told. */
export function trySettle(waiter: Waiter | undefined, address: string, outcome: Outcome): void {
  try {
    waiter?.settle(outcome);
  } catch (error) {
    announcements.busDropped.publish({ address, why: messageOf(error) });
  }
}

/** Of a publication that an uplink brought: the same in every loop. Numbers of one sender grow. */
export interface Origin {
  readonly sender: string;
  readonly number: number;
}

/** On its way to a consumer. */
export interface Delivery {
  readonly address: string;
  readonly body: unknown;
  readonly headers: BusHeaders;
  /** `undefined` where nobody waits. */
  readonly waiter: Waiter | undefined;
  /** To all consumers, not to one of them. */
  readonly isPublished: boolean;
  /** Of a publication that an uplink brought. */
  readonly origin?: Origin | undefined;
}

export interface ReplyOptions {
  readonly headers?: BusHeaders | undefined;
  /** The name of the codec for the body. Default: that of its class, if there is one. */
  readonly codec?: string | undefined;
}

export interface ReplyRequestOptions extends ReplyOptions {
  /** Rejects with `BUS_TIMEOUT` after so long, in ms. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a message carries. */
export interface Content {
  readonly body: unknown;
  readonly headers: BusHeaders;
}

/** The bus on which a message came. */
export interface Asker {
  /** As it travels. Throws `BUS_CODEC_FAILED`. */
  encode(content: Content, codec: string | undefined): Content;
  /** Calls `send` with a waiter; resolves with what that hears. */
  ask(
    address: string,
    options: ReplyRequestOptions,
    send: (waiter: Waiter) => void,
  ): Promise<BusMessage>;
}

/** Of `fail`, as Vert.x has them: any number that the two sides agree on. */
const maxFailureCode = 2 ** 31 - 1;

export class BusMessage<Body = unknown> {
  readonly address: string;
  readonly body: Body;
  readonly headers: BusHeaders;
  readonly #waiter: Waiter | undefined;
  readonly #asker: Asker;
  #isAnswered = false;

  /** @internal */
  constructor(delivery: Delivery, asker: Asker) {
    const { address, headers, waiter } = delivery;
    const { body }: { readonly body: Body } = Object(delivery); // as whoever asked says that it is
    this.address = address;
    this.body = body;
    this.headers = headers;
    this.#waiter = waiter;
    this.#asker = asker;
  }

  /** Whether somebody waits for an answer that was not given. */
  get isAwaited(): boolean {
    return this.#waiter !== undefined && !this.#isAnswered;
  }

  /**
   * Answers a request; where nobody waits nothing happens. Throws `BUS_REPLIED` the second time,
   * `BUS_CODEC_FAILED`, or what is thrown for a body that cannot travel: then it was not answered.
   */
  reply(body: unknown, options: ReplyOptions = {}): void {
    this.#answer({ isDone: true, ...this.#encoded(body, options), waiter: undefined });
  }

  #encoded(body: unknown, { headers, codec }: ReplyOptions): Content {
    return this.#asker.encode({ body, headers: headersOf(headers) }, codec);
  }

  /**
   * Answers a request, and waits for what the other side says to that. Rejects as `request` does, with
   * `BUS_NO_HANDLERS` where nobody waits, and as `reply` throws.
   */
  async replyAndRequest(body: unknown, options: ReplyRequestOptions = {}): Promise<BusMessage> {
    const content = this.#encoded(body, options);
    if (this.#waiter === undefined) throw nobodyWaits(this.address);
    return await this.#asker.ask(this.address, options, (waiter) => {
      this.#answer({ isDone: true, ...content, waiter });
    });
  }

  /** Answers that it cannot be done: the request rejects with `BUS_FAILED`. Throws as `reply` does. */
  fail(failureCode: number, message: string): void {
    integer('failureCode', failureCode, -maxFailureCode, maxFailureCode);
    const error = Object.assign(new CodedError('BUS_FAILED', message), { failureCode });
    this.#answer({ isDone: false, error });
  }

  /** What the handler threw; throws nothing. @internal */
  failWith(error: CodedError): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    trySettle(this.#waiter, this.address, { isDone: false, error });
  }

  #answer(outcome: Outcome): void {
    if (this.#isAnswered) {
      const text = `a message to ${this.address} was answered before: answer each one once`;
      throw new CodedError('BUS_REPLIED', text);
    }
    this.#waiter?.settle(outcome);
    this.#isAnswered = true;
  }
}
