// Functions that see every message of a loop's bus before it is sent, or before its handler is called, as
// Vert.x's interceptors: for what all messages have in common, such as headers, counting or permission.
// Not theirs: answers, and what manycore's own parts send each other.

import { CodedError } from '../errors.js';
import { checkFunction, ownOptions } from '../internal/index.js';
import type { Registration } from './codecs.js';
import { type BusHeaders, type Delivery, headersOf } from './message.js';

/** A message as an interceptor sees it. */
export interface InterceptedMessage {
  readonly address: string;
  readonly body: unknown;
  readonly headers: BusHeaders;
  /** It is a request. */
  readonly isAwaited: boolean;
  /** To all consumers, not to one of them. */
  readonly isPublished: boolean;
}

/** What goes on in place of the message; what is left out stays. */
export interface InterceptedChange {
  readonly body?: unknown;
  readonly headers?: BusHeaders | undefined;
}

/**
 * Returns nothing, what is changed, or false: then the message goes no further, and a request rejects with
 * `BUS_INTERCEPTED`. What it throws is thrown to the sender, or taken as thrown by the handler.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without `return` is one, too
export type Interceptor = (message: InterceptedMessage) => InterceptedChange | false | void;

export interface Interceptors {
  /** Before a message is sent here, to whomever. */
  readonly outbound?: Interceptor | undefined;
  /** Before a handler that is here is called, with each handler's message. */
  readonly inbound?: Interceptor | undefined;
}

const names = new Set(['outbound', 'inbound']);

export function intercepted(address: string): CodedError {
  const message = `an interceptor has stopped the message to ${address}`;
  return new CodedError('BUS_INTERCEPTED', message);
}

function wrongAnswer(): CodedError {
  const message = 'an interceptor answers at once: with nothing, false, or { body, headers }';
  return new CodedError('OPTION_INVALID', message);
}

/** Those of one direction, in the order in which they were added. */
export class InterceptorChain {
  readonly #interceptors: Interceptor[] = [];

  get isEmpty(): boolean {
    return this.#interceptors.length === 0;
  }

  add(interceptor: Interceptor): void {
    this.#interceptors.push(interceptor);
  }

  delete(interceptor: Interceptor): void {
    const at = this.#interceptors.indexOf(interceptor);
    if (at >= 0) this.#interceptors.splice(at, 1);
  }

  /** What goes on; `undefined`: nothing does. Throws what one of them throws. */
  pass(delivery: Delivery): Delivery | undefined {
    let passed = delivery;
    for (const each of [...this.#interceptors]) {
      const { address, body, headers, waiter, isPublished } = passed;
      const change = each({ address, body, headers, isPublished, isAwaited: waiter !== undefined });
      if (change === false) return undefined;
      if (change === undefined) continue;
      if (typeof change !== 'object' || change === null || 'then' in change) throw wrongAnswer();
      passed = {
        ...passed,
        body: 'body' in change ? change.body : body,
        headers: change.headers === undefined ? headers : headersOf(change.headers),
      };
    }
    return passed;
  }
}

/** Adds to both chains what there is for them. Throws `OPTION_INVALID`. */
export function addInterceptors(
  interceptors: Interceptors,
  chains: { readonly outbound: InterceptorChain; readonly inbound: InterceptorChain },
): Registration {
  const { outbound, inbound } = ownOptions('the interceptors', interceptors, names);
  const [out, into] = [own('outbound', outbound), own('inbound', inbound)];
  if (out !== undefined) chains.outbound.add(out);
  if (into !== undefined) chains.inbound.add(into);
  const close = (): void => {
    if (out !== undefined) chains.outbound.delete(out);
    if (into !== undefined) chains.inbound.delete(into);
  };
  return { close, [Symbol.dispose]: close };
}

/** A function of its own: the same may be added twice. */
function own(name: string, interceptor: Interceptor | undefined): Interceptor | undefined {
  if (interceptor === undefined) return undefined;
  checkFunction(name, interceptor);
  return (message) => interceptor(message);
}
