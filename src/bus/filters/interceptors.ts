// Interceptors, as in Vert.x: functions that see every message of a loop's bus before it is sent, or before
// its handler is called. Used for what all messages have in common, such as headers, counting or permission.
// Replies have directions of their own. Messages between parts of manycore pass none.

import { CodedError } from '../../errors.js';
import { checkFunction, ownOptions } from '../../lib/index.js';
import {
  type BusHeaders,
  type DistinctBusHeaders,
  distinctHeaders,
  headersOf,
  joinedHeaders,
  type OutgoingBusHeaders,
  withValuesKept,
} from '../delivery/headers.js';
import type { Delivery } from '../delivery/message.js';
import type { Registration } from './codecs.js';

/** A message as an interceptor sees it. */
export interface InterceptedMessage {
  readonly address: string;
  readonly body: unknown;
  /** Each header as one text; several values of a name are joined by `, `. */
  readonly headers: BusHeaders;
  /** All values of each header. */
  readonly headersDistinct: DistinctBusHeaders;
  /** True: a request, or a reply that asks for a reply. */
  readonly isAwaited: boolean;
  /** True: for all consumers, not for one of them. */
  readonly isPublished: boolean;
}

/** The fields to replace; those left out stay. */
export interface InterceptedChange {
  readonly body?: unknown;
  /** A header that keeps the text of `InterceptedMessage.headers` keeps its values. */
  readonly headers?: OutgoingBusHeaders | undefined;
}

/**
 * Returns nothing, the fields to replace, or false: then the message goes no further, and a request rejects
 * with `BUS_INTERCEPTED`. An exception is thrown to the sender or replier, counts as one of the handler, or
 * rejects the request whose reply arrives.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without `return` is one, too
export type Interceptor = (message: InterceptedMessage) => InterceptedChange | false | void;

export interface Interceptors {
  /** Called before a message is sent here. */
  readonly outbound?: Interceptor | undefined;
  /** Called before each handler here, with its message. */
  readonly inbound?: Interceptor | undefined;
  /** Called before a reply to a request is sent here. Failures are no replies. */
  readonly outboundReply?: Interceptor | undefined;
  /** Called before a requester here gets its reply. */
  readonly inboundReply?: Interceptor | undefined;
}

const directions = ['outbound', 'inbound', 'outboundReply', 'inboundReply'] as const;

/** The interceptors of a bus by direction, in the order in which they were added. */
export type AddedInterceptors = Readonly<Record<(typeof directions)[number], Interceptor[]>>;

export function noInterceptors(): AddedInterceptors {
  return { outbound: [], inbound: [], outboundReply: [], inboundReply: [] };
}

const names = new Set<string>(directions);

function wrongAnswer(): CodedError {
  const message = 'an interceptor answers at once: with nothing, false, or { body, headers }';
  return new CodedError('OPTION_INVALID', message);
}

/**
 * Returns the message after all of these, in order; `undefined`: it was stopped. Throws what an interceptor
 * throws.
 */
export function intercept(
  interceptors: readonly Interceptor[],
  delivery: Delivery,
): Delivery | undefined {
  let passed = delivery;
  for (const each of [...interceptors]) {
    const { address, body, headers, waiter, isPublished } = passed;
    const change = each({
      address,
      body,
      headers: joinedHeaders(headers),
      get headersDistinct() {
        return distinctHeaders(headers);
      },
      isPublished,
      isAwaited: waiter !== undefined,
    });
    if (change === false) return undefined;
    if (change === undefined) continue;
    if (typeof change !== 'object' || change === null || 'then' in change) throw wrongAnswer();
    passed = {
      ...passed,
      body: 'body' in change ? change.body : body,
      headers:
        change.headers === undefined ? headers : withValuesKept(headersOf(change.headers), headers),
    };
  }
  return passed;
}

/** Adds the interceptors to those of their directions. Throws `OPTION_INVALID`. */
export function addInterceptors(interceptors: Interceptors, all: AddedInterceptors): Registration {
  const given = ownOptions('the interceptors', interceptors, names);
  const added = directions.map((name) => [name, own(name, given[name])] as const);
  for (const [name, each] of added) if (each !== undefined) all[name].push(each);
  const close = (): void => {
    for (const [name, each] of added) remove(all[name], each);
  };
  return { close, [Symbol.dispose]: close };
}

function remove(interceptors: Interceptor[], interceptor: Interceptor | undefined): void {
  const at = interceptor === undefined ? -1 : interceptors.indexOf(interceptor);
  if (at >= 0) interceptors.splice(at, 1);
}

/** Wraps the function in one of its own: the same may be added twice. */
function own(name: string, interceptor: Interceptor | undefined): Interceptor | undefined {
  if (interceptor === undefined) return undefined;
  checkFunction(name, interceptor);
  return (message) => interceptor(message);
}
