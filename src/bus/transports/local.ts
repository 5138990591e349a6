// The transport to consumers of the same loop. Messages wait for the next turn of the loop. So `send` never
// runs foreign code, and continuous sending does not starve the loop's other work. Bodies and replies are
// copied, as between loops. Not here: the copies (copy.ts), the handler's call (consumer.ts).

import { Consumer } from '../delivery/consumer.js';
import type { Delivery, Outcome, Waiter } from '../delivery/message.js';
import type { Receivers } from '../delivery/receivers.js';
import type { BusState } from '../delivery/state.js';
import type { TurnQueue } from '../delivery/turn-queue.js';
import { busClosed } from '../errors.js';
import type { RemoteTransport, Transport } from './transport.js';

export interface LocalParts {
  /** Returns a body's copy for a consumer, which its sender cannot change. Throws if it cannot travel. */
  readonly copy: (body: unknown) => unknown;
  readonly queue: TurnQueue;
  readonly receivers: Receivers;
  readonly state: BusState;
}

export class LocalTransport implements Transport {
  readonly #copy: LocalParts['copy'];
  readonly #queue: TurnQueue;
  readonly #receivers: Receivers;
  readonly #state: BusState;

  constructor({ copy, queue, receivers, state }: LocalParts) {
    this.#copy = copy;
    this.#queue = queue;
    this.#receivers = receivers;
    this.#state = state;
  }

  get hasRoom(): boolean {
    return this.#queue.hasRoom;
  }

  /** Takes a message whose receiver is chosen in its turn: others to the address wait already, or there is none. */
  deliver(message: Delivery): void {
    this.deliverTo(undefined, message);
  }

  /** Takes a message for this consumer; if that is closed by then, as `deliver`. */
  deliverTo(consumer: Consumer | undefined, message: Delivery): void {
    const own = this.copyOf(message);
    this.#queue.push(message.address, () => {
      if (consumer === undefined || !consumer.take(own)) this.#pass(own);
    });
  }

  copyOf(message: Delivery): Delivery {
    const { body, waiter } = message;
    return { ...message, body: this.#copy(body), waiter: this.#near(waiter) };
  }

  /** Wraps a waiter for a consumer here: its replies are copied. */
  #near(waiter: Waiter | undefined): Waiter | undefined {
    if (waiter === undefined) return undefined;
    const settle = (outcome: Outcome): void => {
      if (!outcome.isDone) waiter.settle(outcome);
      else {
        const body = this.#copy(outcome.body);
        waiter.settle({ ...outcome, body, waiter: this.#near(outcome.waiter) });
      }
    };
    return { settle, whenGivenUp: (callback) => waiter.whenGivenUp(callback) };
  }

  /**
   * Passes a copied message to the next receiver. Without one, tries once more in the next turn: by then every
   * channel was read since the sender may have been notified of a consumer.
   */
  #pass(message: Delivery, isLastTime = false): void {
    const { address, locality } = message;
    const receiver = this.#receivers.next(address, locality);
    if (receiver === undefined) {
      if (isLastTime) this.#state.refuse(message);
      else this.#queue.again(address, () => this.#pass(message, true));
    } else if (receiver instanceof Consumer) receiver.take(message);
    else this.passTo(receiver, message);
  }

  /** Passes a copied message on; an error can only reach the waiter, since the caller has returned long ago. */
  passTo(transport: Transport, message: Delivery): void {
    try {
      transport.deliver(message);
    } catch (error) {
      this.#state.lose(message, error);
    }
  }

  /** Delivers what waited at a closed consumer to others; publications have reached those already. */
  passOn(message: Delivery): void {
    if (message.isPublished) return;
    if (this.#state.isClosed) message.waiter?.settle({ isDone: false, error: busClosed() });
    else this.#queue.again(message.address, () => this.#pass(message));
  }

  /** Delivers to all of these now, a copy for each; returns how many took it. */
  spread(message: Delivery, consumers: readonly Consumer[], from?: RemoteTransport): number {
    let count = 0;
    for (const [at, each] of consumers.entries()) {
      const isLast = at === consumers.length - 1;
      const own = isLast ? message : { ...message, body: this.#copy(message.body) };
      if (each.take(own, from)) count += 1;
    }
    return count;
  }
}
