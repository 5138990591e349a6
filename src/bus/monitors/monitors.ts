// Monitors of one bus: each calls its listener when a consumer of its address ends, anywhere in the program. The
// receivers report the ends: consumers here that close, counts of peers that go down, peers that are gone.
// While the program has no consumer of an address, those on other machines are watched by the uplink, which has
// no count of them: one notice is for all.
// Not here: consumers that move to another loop, which is no end (hand-over/).

import { CodedError } from '../../errors.js';
import { messageOf, setImmediate } from '../../lib/index.js';
import type { Receivers } from '../delivery/receivers.js';
import type { BusState } from '../delivery/state.js';
import { inNextTurn } from '../delivery/turn-queue.js';
import type { Registration } from '../filters/codecs.js';
import type { Found } from '../transports/transport.js';
import type { FollowEnds } from './targets.js';
import type { ConsumerEnd } from './types.js';

/** A listener, with the address or the name that errors are reported with. */
interface Listener<End> {
  readonly call: (end: End) => unknown;
  readonly what: string;
  readonly unit: string | undefined;
}

interface Monitor extends Listener<ConsumerEnd> {
  readonly address: string;
  /** True: it is known whether there was a consumer when it began. */
  hasBegun: boolean;
  isClosed: boolean;
  /** True: another machine had a consumer when the connection to the server was lost. */
  hadFar: boolean;
  /** Ends the watch of other machines. */
  unwatch: (() => void) | undefined;
}

export class Monitors {
  readonly #receivers: Receivers;
  readonly #state: BusState;
  readonly #byAddress = new Map<string, Set<Monitor>>();

  constructor(receivers: Receivers, state: BusState) {
    this.#receivers = receivers;
    this.#state = state;
  }

  /** Monitors the consumers of an address. */
  add(
    address: string,
    call: (end: ConsumerEnd) => unknown,
    unit: string | undefined,
  ): Registration {
    const monitor: Monitor = {
      address,
      call,
      what: address,
      unit,
      hasBegun: this.#receivers.has(address),
      isClosed: false,
      hadFar: false,
      unwatch: undefined,
    };
    const all = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, all.add(monitor));
    // A peer that was read before may name a consumer in the next frame of its channel.
    setImmediate(() => setImmediate(() => this.#look(monitor)));
    const close = (): void => {
      monitor.isClosed = true;
      monitor.unwatch?.();
      all.delete(monitor);
      if (all.size === 0 && this.#byAddress.get(address) === all) this.#byAddress.delete(address);
    };
    return { close, [Symbol.dispose]: close };
  }

  /** Monitors the instances of a deployment. */
  follow(
    follow: FollowEnds,
    listener: Listener<Parameters<Parameters<FollowEnds>[0]>[0]>,
  ): Registration {
    let isClosed = false;
    const registration = follow((end) => {
      inNextTurn(() => {
        if (!isClosed) this.#call(listener, end);
      });
    });
    const close = (): void => {
      isClosed = true;
      registration.close();
    };
    return { close, [Symbol.dispose]: close };
  }

  /** Reports that so many consumers of the address have ended. */
  ended(address: string, reason: 'closed' | 'lost', count: number): void {
    for (const monitor of this.#byAddress.get(address) ?? []) {
      monitor.hasBegun = true;
      for (let at = 0; at < count; at += 1) this.#notify(monitor, reason);
      // A watch has maybe seen the consumers that ended now: it begins anew.
      monitor.unwatch?.();
      monitor.unwatch = undefined;
      this.#look(monitor);
    }
  }

  /** An uplink was attached: what it reaches is watched, too. */
  lookAgain(): void {
    for (const all of this.#byAddress.values()) for (const each of all) this.#look(each);
  }

  /** Watches other machines while the program itself has no consumer. */
  #look(monitor: Monitor): void {
    const { address, isClosed, unwatch } = monitor;
    if (isClosed || unwatch !== undefined) return;
    if (this.#receivers.has(address)) {
      monitor.hasBegun = true;
      return;
    }
    const uplink = this.#receivers.uplinkFor(address);
    if (uplink === undefined) {
      this.#none(monitor);
      return;
    }
    monitor.unwatch = uplink.watch(address, (found, hasAnswered) => {
      monitor.unwatch = undefined;
      this.#found(monitor, found, hasAnswered);
      setImmediate(() => this.#look(monitor));
    });
  }

  #found(monitor: Monitor, found: Found, hasAnswered: boolean): void {
    if (found === 'unknown') {
      // An answer may be that of a consumer which the program has now.
      if (hasAnswered && !this.#receivers.has(monitor.address)) monitor.hadFar = true;
      return;
    }
    if (found === 'gone' || monitor.hadFar) this.#notify(monitor, 'lost');
    else this.#none(monitor);
    monitor.hasBegun = true;
    monitor.hadFar = false;
  }

  #none(monitor: Monitor): void {
    if (!monitor.hasBegun) this.#notify(monitor, 'none');
    monitor.hasBegun = true;
  }

  #notify(monitor: Monitor, reason: ConsumerEnd['reason']): void {
    inNextTurn(() => {
      if (!monitor.isClosed) this.#call(monitor, { address: monitor.address, reason });
    });
  }

  /** An error of the listener is reported as that of a handler, and ends nothing. */
  #call<End>({ call, what, unit }: Listener<End>, end: End): void {
    if (this.#state.isClosed) return;
    const failed = (cause: unknown): void => {
      const text = `the listener of a monitor of ${what} threw: ${messageOf(cause)}`;
      const error = new CodedError('BUS_HANDLER_ERROR', text, { cause });
      this.#state.handlerFailed({ address: what, unit, error });
    };
    try {
      const result = call(end);
      if (result instanceof Promise) result.catch(failed);
    } catch (cause) {
      failed(cause);
    }
  }
}
