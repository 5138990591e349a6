// Interceptors and codecs that a program has added to a bus, in the order in which messages pass them.
// Outbound: interceptors, then codecs; inbound: codecs, then interceptors. Without any they cost one check.
// Not here: what each does.

import type { Content, Delivery } from '../delivery/message.js';
import { isReserved } from '../reserved.js';
import { type BusCodec, Codecs, type Registration } from './codecs.js';
import {
  addInterceptors,
  InterceptorChain,
  type Interceptors,
  intercepted,
} from './interceptors.js';

export class Filters {
  /** Called when an interceptor has stopped a message. */
  onStop: () => void = () => {};
  readonly #codecs = new Codecs();
  readonly #outbound = new InterceptorChain();
  readonly #inbound = new InterceptorChain();

  /** As `Bus.intercept`. */
  intercept(interceptors: Interceptors): Registration {
    return addInterceptors(interceptors, { outbound: this.#outbound, inbound: this.#inbound });
  }

  /** As `Bus.addCodec`. */
  addCodec<Value, Encoded>(codec: BusCodec<Value, Encoded>): Registration {
    return this.#codecs.add(codec);
  }

  /** Encodes a reply. Throws `BUS_CODEC_FAILED`. */
  encode(content: Content, codec: string | undefined): Content {
    return this.#codecs.encode(content, codec);
  }

  /** Decodes a reply. Throws `BUS_CODEC_FAILED`. */
  decode<C extends Content>(content: C): C {
    return this.#codecs.decode(content);
  }

  /**
   * Returns the message to send; `undefined`: an interceptor has stopped it, and a waiter has the error.
   * Throws `BUS_CODEC_FAILED`, and what an interceptor throws.
   */
  pass(delivery: Delivery, codec: string | undefined): Delivery | undefined {
    const passed = this.#through(this.#outbound, delivery);
    if (passed === undefined) return undefined;
    const content = this.#codecs.encode(passed, codec);
    return content === passed ? passed : { ...passed, ...content };
  }

  /** Returns the decoded message for a handler; else as `pass`. */
  receive(decoded: Delivery): Delivery | undefined {
    return this.#through(this.#inbound, decoded);
  }

  #through(chain: InterceptorChain, delivery: Delivery): Delivery | undefined {
    const { address, waiter } = delivery;
    if (chain.isEmpty || isReserved(address)) return delivery;
    const passed = chain.pass(delivery);
    if (passed !== undefined) return passed;
    this.onStop();
    waiter?.settle({ isDone: false, error: intercepted(address) });
    return undefined;
  }
}
