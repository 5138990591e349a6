// The protocol of two buses over a channel: frames with three int32 (`kind`, `task`, `target`) and a value as
// body. Kinds below 40 belong to workers; the link uses two of them (worker/protocol.ts).

import { CodedError, type ErrorCode, hasCode, isErrorCode } from '../errors.js';
import { isHeader, type OutgoingBusHeaders } from './delivery/headers.js';
import type { Origin } from './delivery/message.js';

export const busFrame = Object.freeze({
  /** task: number of the sender's consumers of an address; body: the address. */
  interest: 40,
  /** target: the number by which the sender names an address from now on; body: the address. */
  name: 45,
  /**
   * task: the number of the sender's request, 0: it waits for no reply; target: the number of the address;
   * body: the message's.
   */
  message: 41,
  /** As `message`, for all consumers. */
  published: 46,
  /** As `message` and `published`, with headers; body: a `MessageBody`. */
  messageWithHeaders: 47,
  publishedWithHeaders: 48,
  /** task: the number of the request; target: as `task` of a message; body: the reply's. */
  reply: 42,
  /** As `reply`; body: a `MessageBody`. */
  replyWithHeaders: 49,
  /** task: the number of the request; body: a `FailureBody`. */
  failure: 43,
  /** The sender has announced all consumers that it had. */
  announced: 44,
  /** body: a `HandOffNote`. */
  handOff: 60,
});

export type MessageBody = readonly [body: unknown, headers: OutgoingBusHeaders];
export type FailureBody = readonly [
  code: ErrorCode,
  message: string,
  failureCode: number | null,
  cause?: unknown,
];

function corrupt(what: string): CodedError {
  return new CodedError('TRANSFER_CORRUPT', `the bus received an invalid ${what}`);
}

/** Throws `TRANSFER_CORRUPT`, as all parsers here. */
export function parseAddress(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw corrupt('address');
  return value;
}

/** Parses a message with headers. */
export function parseMessage(value: unknown): MessageBody {
  if (!Array.isArray(value) || value.length !== 2) throw corrupt('message');
  const [body, headers]: unknown[] = value;
  return [body, parseHeaders(headers)];
}

/** Length of a text that is cut, because the whole one is above the limit of a message, in characters. */
const cutChars = 256;

/** Sends a text, cut where the whole one is too large. Throws what `send` throws. */
export function sendText(text: string, send: (text: string) => void): void {
  try {
    send(text);
  } catch (error) {
    if (!hasCode(error, 'BUS_TOO_LARGE') || text.length <= cutChars) throw error;
    send(`${text.slice(0, cutChars)}… (${text.length - cutChars} more characters)`);
  }
}

/**
 * Posts a failure by `post`, without its cause where that cannot travel, and with a cut text where the whole one is
 * too large. Throws what `post` throws.
 */
export function postFailure(error: CodedError, post: (body: FailureBody) => void): void {
  const { code, message, cause } = error;
  const given: unknown = Reflect.get(error, 'failureCode');
  const failureCode = typeof given === 'number' ? given : null;
  if (cause !== undefined) {
    try {
      post([code, message, failureCode, cause]);
      return;
    } catch {
      // A cause that holds a socket, or is too large.
    }
  }
  sendText(message, (text) => post([code, text, failureCode]));
}

/** Returns the error of a `FailureBody`. */
export function parseFailure(value: unknown): CodedError {
  if (!Array.isArray(value)) throw corrupt('failure');
  const [code, message, failureCode, cause]: unknown[] = value;
  const isNumber = failureCode === null || typeof failureCode === 'number';
  if (!isErrorCode(code) || typeof message !== 'string' || !isNumber) throw corrupt('failure');
  const error = new CodedError(code, message, cause === undefined ? undefined : { cause });
  return failureCode === null ? error : Object.assign(error, { failureCode });
}

function parseHeaders(value: unknown): OutgoingBusHeaders {
  if (!isHeaders(value)) throw corrupt('list of headers');
  return value;
}

function isHeaders(value: unknown): value is OutgoingBusHeaders {
  const isObject = typeof value === 'object' && value !== null;
  return isObject && Object.values(value).every(isHeader);
}

/** Body of a request to a service. */
export interface ServiceCall {
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Returns `undefined` for a body that is no call. */
export function parseServiceCall(value: unknown): ServiceCall | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = new Map(Object.entries(value));
  const method: unknown = fields.get('method');
  const args: unknown = fields.get('args');
  return typeof method === 'string' && Array.isArray(args) ? { method, args } : undefined;
}

/** Notices of hand-offs (hand-offs.ts). `token` names a hand-off, `by` and `to` are names of buses. */
export type HandOffNote =
  | { readonly type: 'named'; readonly name: string }
  /** A consumer of the sender moves to the bus `to`; the sender has `consumers` others of the address. */
  | {
      readonly type: 'moved';
      readonly token: string;
      readonly address: string;
      readonly consumers: number;
      readonly to: string;
    }
  /** The sender sends nothing more to the source, or everything to the target. */
  | {
      readonly type: 'switched';
      readonly token: string;
      readonly address: string;
      readonly by: string;
    }
  /** The sender has so many consumers of the address, now that its count includes this one, or never will. */
  | {
      readonly type: 'included';
      readonly token: string;
      readonly address: string;
      readonly consumers: number;
    }
  /** In the stream: all messages of this bus were forwarded. */
  | { readonly type: 'passed'; readonly token: string; readonly by: string }
  /** In the stream: nothing follows. */
  | { readonly type: 'ended'; readonly token: string };

export function parseHandOff(value: unknown): HandOffNote {
  const what = 'note of a consumer that moves';
  if (typeof value !== 'object' || value === null) throw corrupt(what);
  const fields = new Map(Object.entries(value));
  const text = (name: string): string => {
    const field: unknown = fields.get(name);
    if (typeof field !== 'string') throw corrupt(what);
    return field;
  };
  const count = (): number => {
    const consumers: unknown = fields.get('consumers');
    if (typeof consumers !== 'number') throw corrupt(what);
    return consumers;
  };
  const type: unknown = fields.get('type');
  if (type === 'named') return { type, name: text('name') };
  const token = text('token');
  switch (type) {
    case 'moved':
      return { type, token, address: text('address'), consumers: count(), to: text('to') };
    case 'switched':
      return { type, token, address: text('address'), by: text('by') };
    case 'included':
      return { type, token, address: text('address'), consumers: count() };
    case 'passed':
      return { type, token, by: text('by') };
    case 'ended':
      return { type, token };
    default:
      throw corrupt(what);
  }
}

/** A forwarded message, as the body of one in the stream. */
export interface HandedOn {
  readonly body: unknown;
  readonly isPublished: boolean;
  readonly origin: Origin | undefined;
}

export function writeHandedOn({ body, isPublished, origin }: HandedOn): readonly unknown[] {
  return origin === undefined ? [body, isPublished] : [body, isPublished, origin];
}

export function parseHandedOn(value: unknown): HandedOn {
  const [body, isPublished, origin]: unknown[] = Array.isArray(value) ? value : [];
  if (typeof isPublished !== 'boolean') throw corrupt('message that is handed on');
  return { body, isPublished, origin: origin === undefined ? undefined : parseOrigin(origin) };
}

function parseOrigin(value: unknown): Origin {
  const sender: unknown = Reflect.get(Object(value), 'sender');
  const number: unknown = Reflect.get(Object(value), 'number');
  if (typeof sender === 'string' && typeof number === 'number') return { sender, number };
  throw corrupt('message that is handed on');
}

/** Bodies of the messages between the two ends of a stream. */
export type StreamFrame =
  | { readonly type: 'item'; readonly item: unknown }
  /** Grants so many more items. */
  | { readonly type: 'credit'; readonly items: number }
  /** No item follows. */
  | { readonly type: 'end' }
  /** Nothing is taken any more. */
  | { readonly type: 'destroyed'; readonly message: string | undefined; readonly code?: ErrorCode };

export function parseStreamFrame(value: unknown): StreamFrame {
  if (typeof value !== 'object' || value === null) throw corrupt('frame of a stream');
  const fields = new Map(Object.entries(value));
  const type: unknown = fields.get('type');
  switch (type) {
    case 'item':
      return { type, item: fields.get('item') };
    case 'credit': {
      const items: unknown = fields.get('items');
      if (typeof items === 'number' && items > 0) return { type, items };
      break;
    }
    case 'end':
      return { type };
    case 'destroyed': {
      const message: unknown = fields.get('message');
      const code: unknown = fields.get('code');
      const text = typeof message === 'string' ? message : undefined;
      return { type, message: text, ...(isErrorCode(code) && { code }) };
    }
  }
  throw corrupt('frame of a stream');
}
