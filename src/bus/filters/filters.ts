// Interceptors and codecs that a program has added to a bus, in the order in which messages pass them.
// Outbound: interceptors, then codecs; inbound: codecs, then interceptors. Without any they cost one check.
// Not here: what each does.

import { noHeaders } from '../delivery/headers.js';
import type { Content, Delivery } from '../delivery/message.js';
import type { BusState } from '../delivery/state.js';
import { intercepted } from '../errors.js';
import { isReserved } from '../reserved.js';
import { type BusCodec, Codecs, type Registration } from './codecs.js';
import {
  addInterceptors,
  type Interceptor,
  type Interceptors,
  intercept,
  noInterceptors,
} from './interceptors.js';

export class Filters {
  readonly #state: BusState;
  readonly #codecs = new Codecs();
  readonly #interceptors = noInterceptors();

  constructor(state: BusState) {
    this.#state = state;
  }

  /** As `Bus.intercept`. */
  intercept(interceptors: Interceptors): Registration {
    return addInterceptors(interceptors, this.#interceptors);
  }

  /** As `Bus.addCodec`. */
  addCodec<Value, Encoded>(codec: BusCodec<Value, Encoded>, unit?: string): Registration {
    return this.#codecs.add(codec, unit);
  }

  /** Encodes a body; those of manycore's own addresses stay as they are. Throws `BUS_CODEC_FAILED`. */
  encode<C extends Content>(address: string, content: C, codec: string | undefined): C {
    if (codec === undefined && (!this.#codecs.hasTypes || isReserved(address))) return content;
    return this.#codecs.encode(content, codec);
  }

  /** Decodes a body. Throws `BUS_CODEC_FAILED`. */
  decode<C extends Content>(content: C): C {
    return content.headers === noHeaders ? content : this.#codecs.decode(content);
  }

  /**
   * Returns the message to send; `undefined`: an interceptor has stopped it, and a waiter has the error.
   * Throws `BUS_CODEC_FAILED`, and what an interceptor throws.
   */
  send(delivery: Delivery, codec: string | undefined): Delivery | undefined {
    const passed = this.#through(this.#interceptors.outbound, delivery);
    return passed === undefined ? undefined : this.encode(passed.address, passed, codec);
  }

  /**
   * Returns the message for a handler; `undefined`: it could not be decoded, or was stopped, and a waiter has
   * the error. Throws what an interceptor throws.
   */
  receive(delivery: Delivery): Delivery | undefined {
    let decoded: Delivery;
    try {
      decoded = this.decode(delivery);
    } catch (error) {
      this.#state.lose(delivery, error);
      return undefined;
    }
    return this.#through(this.#interceptors.inbound, decoded);
  }

  /**
   * Returns the reply to send; `undefined`: an interceptor has stopped it, and a waiter of its own has the
   * error. Throws as `send`.
   */
  reply(reply: Delivery, codec: string | undefined): Delivery | undefined {
    const passed = this.#through(this.#interceptors.outboundReply, reply);
    return passed === undefined ? undefined : this.encode(passed.address, passed, codec);
  }

  /** Returns the reply for a requester; `undefined`, and throws, as `reply`. */
  receiveReply(reply: Delivery): Delivery | undefined {
    const decoded = this.decode(reply);
    return this.#through(this.#interceptors.inboundReply, decoded);
  }

  #through(interceptors: readonly Interceptor[], delivery: Delivery): Delivery | undefined {
    const { address, waiter } = delivery;
    if (interceptors.length === 0 || isReserved(address)) return delivery;
    const passed = intercept(interceptors, delivery);
    if (passed !== undefined) return passed;
    this.#state.dropped += 1;
    waiter?.settle({ isDone: false, error: intercepted(address) });
    return undefined;
  }
}
