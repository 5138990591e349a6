// A peer over a channel: one end of the connection of two buses. Not here: handling of messages (bus.ts), and
// how values travel (worker/link.ts).

import type { ByteReader, ChannelEnd } from '../../channels/index.js';
import { createExporter, createImporter } from '../../context/index.js';
import { CodedError } from '../../errors.js';
import { announcements, defer } from '../../lib/index.js';
import { bufferCarrier, Link, readError } from '../../worker/index.js';
import { noHeaders, type OutgoingBusHeaders } from '../delivery/headers.js';
import type { Delivery, Outcome, Waiter } from '../delivery/message.js';
import { consumerLost, noRequester } from '../errors.js';
import type { EventBus } from '../event-bus.js';
import {
  busFrame,
  type HandOffNote,
  parseAddress,
  parseFailure,
  parseHandOff,
  parseMessage,
  postFailure,
} from '../protocol.js';
import { reservedPrefix, streamPrefix } from '../reserved.js';
import type { Attached, Peer } from './transport.js';

/** The number of a message without a waiter. */
const noWaiter = 0;
/** May wait for a peer that reads slower than others write. */
const maxWaitingFrames = 10_000;
const maxWaitingBytes = 2 ** 20;

/** Addresses that have a number at a time; programs may use a new address for every message. */
const maxNumberedAddresses = 4096;

const messageKinds = { plain: busFrame.message, withHeaders: busFrame.messageWithHeaders };
const publishedKinds = { plain: busFrame.published, withHeaders: busFrame.publishedWithHeaders };

export interface BusLinkOptions {
  /** True: the peer is a loop of another program, which has a director and loops of its own. Default: false. */
  readonly isOfOtherProgram?: boolean;
}

/** True: an address of manycore itself that means another consumer in each program. */
function isOfProgram(address: string): boolean {
  return address.startsWith(reservedPrefix) && !address.startsWith(streamPrefix);
}

export class BusLink implements Peer {
  /** Resolves when the peer is gone, with the error that ended its channel. */
  readonly closed: Promise<Error | undefined>;
  /** Resolves when the peer has announced its consumers, or is gone. */
  readonly announced: Promise<void>;
  readonly #link: Link;
  readonly #attached: Attached;
  /** Waiters for replies of the peer, by request number. */
  readonly #waiters = new Map<number, Waiter>();
  readonly #announced = defer<void>();
  /** Numbers of addresses: those sent to the peer, and those received from it. */
  readonly #numbers = new Map<string, number>();
  readonly #addresses: string[] = [];
  readonly #isOfOtherProgram: boolean;
  #lastNumber = noWaiter;

  /** Attaches the bus at the other end of `end` to `bus`. */
  constructor(bus: EventBus, end: ChannelEnd, { isOfOtherProgram = false }: BusLinkOptions = {}) {
    this.#isOfOtherProgram = isOfOtherProgram;
    const closed = defer<Error | undefined>();
    this.closed = closed.promise;
    this.announced = this.#announced.promise;
    // For this channel alone: a block has a name only where the channel has an arena.
    const buffers = bufferCarrier(() => end.blocks);
    const exporter = createExporter({ buffers });
    this.#link = new Link({
      end,
      exporter,
      importer: createImporter({ exporter, buffers }),
      frames: undefined,
      what: 'the message',
      events: {
        onFrame: (kind, task, target, body) => this.#receive(kind, task, target, body),
        onDrain: () => this.#attached.drained(),
        onClose: (error) => {
          this.#ended(false);
          this.#link.close(); // else this end would stay open for a peer that is gone
          closed.resolve(error);
        },
      },
    });
    this.#attached = bus.attach(this);
    this.#link.post(busFrame.announced, 0, 0, null);
  }

  announce(address: string, consumers: number): void {
    if (this.#isOfOtherProgram && isOfProgram(address)) return;
    this.#link.post(busFrame.interest, consumers, 0, address);
  }

  note(note: HandOffNote): void {
    this.#link.post(busFrame.handOff, 0, 0, note);
  }

  /** Sets whether the peer is blocked: then messages for one of several consumers go to others. */
  setBlocked(isBlocked: boolean): void {
    this.#attached.blocked(isBlocked);
  }

  get hasRoom(): boolean {
    return this.#link.waitingFrames === 0;
  }

  deliver({ address, body, headers, waiter, isPublished }: Delivery): void {
    const { waitingFrames, waitingBytes } = this.#link;
    if (waitingFrames >= maxWaitingFrames || waitingBytes >= maxWaitingBytes) {
      const text = `${waitingFrames} messages wait for another loop, which reads slower than this one sends`;
      throw new CodedError(
        'BUS_FULL',
        `${text}: send less, and await drained() where send() is false`,
      );
    }
    const target = this.#numberOf(address);
    const hasHeaders = headers !== noHeaders;
    const kinds = isPublished ? publishedKinds : messageKinds;
    const kind = hasHeaders ? kinds.withHeaders : kinds.plain;
    const value = hasHeaders ? [body, headers] : body;
    if (waiter === undefined) this.#link.post(kind, noWaiter, target, value);
    else this.#withNumber(waiter, (number) => this.#link.post(kind, number, target, value));
  }

  /** Returns the number of an address; a new one is sent to the peer first. */
  #numberOf(address: string): number {
    const known = this.#numbers.get(address);
    if (known !== undefined) return known;
    let number = this.#numbers.size;
    const [oldest] = number < maxNumberedAddresses ? [] : this.#numbers;
    if (oldest !== undefined) {
      number = oldest[1]; // messages with the old meaning arrive before the new one
      this.#numbers.delete(oldest[0]);
    }
    this.#numbers.set(address, number);
    this.#link.post(busFrame.name, 0, number, address);
    return number;
  }

  /** Sends nothing more; the peer still reads what was sent. */
  close(): void {
    this.#ended(true);
    this.#link.close();
  }

  ref(): void {
    this.#link.ref();
  }

  unref(): void {
    this.#link.unref();
  }

  #ended(hasLeft: boolean): void {
    this.#announced.resolve();
    this.#attached.ended(hasLeft);
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.settle({ isDone: false, error: consumerLost() });
  }

  /** Calls `send` with a number for `waiter`, which is free again once that is settled or gives up. */
  #withNumber(waiter: Waiter | undefined, send: (number: number) => void): void {
    if (waiter === undefined) {
      send(noWaiter);
      return;
    }
    do this.#lastNumber = (this.#lastNumber + 1) & 0x7fffffff;
    while (this.#lastNumber === noWaiter || this.#waiters.has(this.#lastNumber));
    const number = this.#lastNumber;
    this.#waiters.set(number, waiter);
    waiter.whenGivenUp(() => this.#waiters.delete(number));
    try {
      send(number);
    } catch (error) {
      this.#waiters.delete(number);
      throw error;
    }
  }

  #receive(kind: number, task: number, target: number, body: ByteReader): void {
    switch (kind) {
      case busFrame.interest: {
        const address = parseAddress(this.#read(body));
        if (this.#isOfOtherProgram && isOfProgram(address)) break;
        this.#attached.interest(address, task);
        break;
      }
      case busFrame.name:
        this.#addresses[target] = parseAddress(this.#read(body));
        break;
      case busFrame.message:
      case busFrame.messageWithHeaders:
      case busFrame.published:
      case busFrame.publishedWithHeaders:
        this.#receiveMessage(kind, task, target, body);
        break;
      case busFrame.reply:
      case busFrame.replyWithHeaders:
        this.#receiveReply(kind, task, target, body);
        break;
      case busFrame.failure:
        this.#settle(task, { isDone: false, error: parseFailure(this.#read(body)) });
        break;
      case busFrame.handOff:
        this.#attached.noted(parseHandOff(this.#read(body)));
        break;
      case busFrame.announced:
        this.#announced.resolve();
        break;
      default: {
        const why = `the bus received an unknown frame: its kind is ${kind}`;
        announcements.busDropped.publish({ address: undefined, why });
      }
    }
  }

  #read(body: ByteReader): unknown {
    return this.#link.codec.read(body);
  }

  /** A message that cannot be read is an error for the sender, if it waits. */
  #receiveMessage(kind: number, number: number, target: number, bytes: ByteReader): void {
    const waiter = number === noWaiter ? undefined : this.#waiterAt(number);
    const address = this.#addresses[target] ?? parseAddress(undefined);
    const isPublished = kind === busFrame.published || kind === busFrame.publishedWithHeaders;
    const isPlain = kind === busFrame.message || kind === busFrame.published;
    let body: unknown;
    let headers: OutgoingBusHeaders = noHeaders;
    try {
      if (isPlain) body = this.#read(bytes);
      else [body, headers] = parseMessage(this.#read(bytes));
    } catch (error) {
      const refused = readError(error);
      if (waiter !== undefined) waiter.settle({ isDone: false, error: refused });
      else announcements.busDropped.publish({ address, why: refused.message });
      return;
    }
    this.#attached.receive({ address, body, headers, waiter, isPublished });
  }

  #receiveReply(kind: number, number: number, asked: number, bytes: ByteReader): void {
    let body: unknown;
    let headers: OutgoingBusHeaders = noHeaders;
    try {
      if (kind === busFrame.reply) body = this.#read(bytes);
      else [body, headers] = parseMessage(this.#read(bytes));
    } catch (error) {
      this.#settle(number, { isDone: false, error: readError(error) });
      return;
    }
    const waiter = asked === noWaiter ? undefined : this.#waiterAt(asked);
    this.#settle(number, { isDone: true, body, headers, waiter });
  }

  /** The waiter may have given up: then a reply to the reply fails. */
  #settle(number: number, outcome: Outcome): void {
    const waiter = this.#waiters.get(number);
    this.#waiters.delete(number); // also for a waiter that passed a request on, and is never over
    if (waiter !== undefined) waiter.settle(outcome);
    else if (outcome.isDone) {
      outcome.waiter?.settle({ isDone: false, error: noRequester() });
    }
  }

  /** Returns the waiter at the peer with this number. */
  #waiterAt(number: number): Waiter {
    const settle = (outcome: Outcome): void => {
      if (outcome.isDone) {
        const { body, headers, waiter } = outcome;
        this.#withNumber(waiter, (own) => {
          if (headers === noHeaders) this.#link.post(busFrame.reply, number, own, body);
          else this.#link.post(busFrame.replyWithHeaders, number, own, [body, headers]);
        });
      } else {
        postFailure(outcome.error, (body) => this.#link.post(busFrame.failure, number, 0, body));
      }
    };
    return { settle, whenGivenUp: () => {} }; // only the peer can detect that
  }
}
