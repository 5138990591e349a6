// A peer over a channel: its end of the conversation of two buses. Not here: what a bus does with what
// comes (bus.ts), and how values travel (host/link.ts).

import type { ByteReader, ChannelEnd } from '../channels/index.js';
import { createImporter } from '../context/index.js';
import { CodedError } from '../errors.js';
import { Link, parentBuffers, parentExporter, readError } from '../host/index.js';
import { announcements, defer } from '../internal/index.js';
import type { EventBus } from './bus.js';
import type { Delivery, Outcome, Waiter } from './message.js';
import type { Attached, Peer } from './peer.js';
import { busFrame, parseAddress, parseFailure, parseMessage, parseReply } from './protocol.js';

/** A number that nobody waits under. */
const nobody = 0;
/** What may wait for a peer that reads slower than others write. */
const mostWaitingFrames = 10_000;
const mostWaitingBytes = 2 ** 20;

export class BusLink implements Peer {
  /** Resolves when the peer is gone, with what its channel ended for. */
  readonly closed: Promise<Error | undefined>;
  /** Resolves when the peer has told which consumers it had, or is gone. */
  readonly introduced: Promise<void>;
  readonly #link: Link;
  readonly #attached: Attached;
  /** Who waits for an answer of the peer, by the number that was sent. */
  readonly #waiters = new Map<number, Waiter>();
  readonly #introduced = defer<void>();
  #lastNumber = nobody;

  /** Attaches the bus at the other end of `end` to `bus`. */
  constructor(bus: EventBus, end: ChannelEnd) {
    let closed: (error: Error | undefined) => void = () => {};
    this.closed = new Promise((resolve) => {
      closed = resolve;
    });
    this.introduced = this.#introduced.promise;
    this.#link = new Link({
      end,
      exporter: parentExporter(),
      importer: createImporter({ exporter: parentExporter(), buffers: parentBuffers }),
      what: 'the message',
      peer: end.owner,
      events: {
        onFrame: (kind, task, target, body) => this.#receive(kind, task, target, body),
        onDrain: () => this.#attached.drained(),
        onClose: (error) => {
          this.#ended();
          this.#link.close(); // or this end would stay open for a peer that is gone
          closed(error);
        },
      },
    });
    this.#attached = bus.attach(this);
    this.#link.post(busFrame.told, 0, 0, null);
  }

  tell(address: string, consumers: number): void {
    this.#link.post(busFrame.interest, consumers, 0, address);
  }

  get hasRoom(): boolean {
    return this.#link.waitingFrames === 0;
  }

  take({ address, body, headers, waiter, isPublished }: Delivery): void {
    const { waitingFrames, waitingBytes } = this.#link;
    if (waitingFrames >= mostWaitingFrames || waitingBytes >= mostWaitingBytes) {
      const text = `${waitingFrames} messages wait for another loop, which reads slower`;
      throw new CodedError(
        'BUS_FULL',
        `${text}: send less, and await drained() where send() is false`,
      );
    }
    this.#withNumber(waiter, (number) => {
      this.#link.post(busFrame.message, number, isPublished ? 1 : 0, [address, body, headers]);
    });
  }

  /** Nothing is sent any more; what was sent is read by the peer. */
  close(): void {
    this.#ended();
    this.#link.close();
  }

  ref(): void {
    this.#link.ref();
  }

  unref(): void {
    this.#link.unref();
  }

  #ended(): void {
    this.#introduced.resolve();
    this.#attached.ended();
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    const message = 'the loop whose consumer had the request is gone: send it again';
    for (const waiter of waiters) {
      waiter.settle({ isDone: false, error: new CodedError('BUS_CONSUMER_LOST', message) });
    }
  }

  /** Calls `send` with a number for `waiter`, which is free again once that hears or gives up. */
  #withNumber(waiter: Waiter | undefined, send: (number: number) => void): void {
    if (waiter === undefined) {
      send(nobody);
      return;
    }
    do this.#lastNumber = (this.#lastNumber + 1) & 0x7fffffff;
    while (this.#lastNumber === nobody || this.#waiters.has(this.#lastNumber));
    const number = this.#lastNumber;
    this.#waiters.set(number, waiter);
    waiter.whenOver(() => this.#waiters.delete(number));
    try {
      send(number);
    } catch (error) {
      this.#waiters.delete(number);
      throw error;
    }
  }

  #receive(kind: number, task: number, target: number, body: ByteReader): void {
    switch (kind) {
      case busFrame.interest:
        this.#attached.heard(parseAddress(this.#read(body)), task);
        break;
      case busFrame.message:
        this.#receiveMessage(task, target === 1, body);
        break;
      case busFrame.reply:
        this.#receiveReply(task, target, body);
        break;
      case busFrame.failure: {
        const [code, message, failureCode] = parseFailure(this.#read(body));
        const error = new CodedError(code, message);
        if (failureCode !== null) Object.assign(error, { failureCode });
        this.#settle(task, { isDone: false, error });
        break;
      }
      case busFrame.told:
        this.#introduced.resolve();
        break;
      default:
        throw new CodedError('TRANSFER_CORRUPT', `what came over the bus is no frame: ${kind}`);
    }
  }

  #read(body: ByteReader): unknown {
    return this.#link.codec.read(body);
  }

  /** What cannot be read here is the sender's to know, where it waits. */
  #receiveMessage(number: number, isPublished: boolean, bytes: ByteReader): void {
    const waiter = this.#waiterAt(number);
    try {
      const [address, body, headers] = parseMessage(this.#read(bytes));
      this.#attached.receive({ address, body, headers, waiter, isPublished });
    } catch (error) {
      const refused = readError(error);
      if (waiter !== undefined) waiter.settle({ isDone: false, error: refused });
      else announcements.busDropped.publish({ address: undefined, why: refused.message });
    }
  }

  #receiveReply(number: number, asked: number, bytes: ByteReader): void {
    try {
      const [body, headers] = parseReply(this.#read(bytes));
      this.#settle(number, { isDone: true, body, headers, waiter: this.#waiterAt(asked) });
    } catch (error) {
      this.#settle(number, { isDone: false, error: readError(error) });
    }
  }

  /** Or it has given up, and will not answer the answer. */
  #settle(number: number, outcome: Outcome): void {
    const waiter = this.#waiters.get(number);
    if (waiter !== undefined) waiter.settle(outcome);
    else if (outcome.isDone) {
      const error = new CodedError('BUS_NO_HANDLERS', 'nobody waits for an answer to this message');
      outcome.waiter?.settle({ isDone: false, error });
    }
  }

  /** Who waits at the peer under this number. */
  #waiterAt(number: number): Waiter | undefined {
    if (number === nobody) return undefined;
    const settle = (outcome: Outcome): void => {
      if (outcome.isDone) {
        const { body, headers, waiter } = outcome;
        this.#withNumber(waiter, (own) => {
          this.#link.post(busFrame.reply, number, own, [body, headers]);
        });
      } else {
        const { code, message } = outcome.error;
        const failureCode: unknown = Reflect.get(outcome.error, 'failureCode') ?? null;
        this.#link.post(busFrame.failure, number, 0, [code, message, failureCode]);
      }
    };
    return { settle, whenOver: () => {} }; // it is the peer that knows
  }
}
