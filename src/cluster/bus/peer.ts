// The bus of a loop on NATS. Addresses are subjects; consumers of `send` and `request` are a queue group,
// and the servers keep the subscriptions. Each loop has a connection of its own, so no process relays.
//
// Answers go to numbers below the inbox of the loop. For a message without consumers the server itself
// answers at once (503, "no responders"). Not here: connections (nats.ts), frames and their verification
// (wire.ts).

import {
  type AdvertisedService,
  type AttachedUplink,
  type Delivery,
  type EventBus,
  type Found,
  type Locality,
  noHandlers,
  noHeaders,
  noRequester,
  type Outcome,
  parseFailure,
  parseMessage,
  postFailure,
  reservedPrefix,
  streamPrefix,
  type Uplink,
  type Waiter,
} from '../../bus/index.js';
import { hasCode } from '../../errors.js';
import { announcements, messageOf } from '../../lib/index.js';
import { readError } from '../../worker/index.js';
import { clusterClosed, refused } from '../errors.js';
import { listen } from '../nats/listen.js';
import type { Connected, NatsConnection, NatsMessage, NatsSubscription } from '../nats/nats.js';
import { Subjects } from '../nats/subjects.js';
import { clusterFrame } from '../protocol.js';
import {
  drain,
  expectsAnswer,
  Forwarding,
  isReportOfNobody,
  nobody,
  RemoteWaiter,
} from './forwarding.js';
import { answerMicro, microPrefix } from './micro.js';
import { Probes } from './probes.js';
import { clocksDiffer, type Signer } from './signature.js';
import { ClusterWire } from './wire.js';

/** One queue group for the consumers of an address in the whole cluster. */
const queueGroup = 'consumers';
const messageKinds: readonly number[] = [clusterFrame.message, clusterFrame.messageWithHeaders];
const answerKinds: readonly number[] = [
  clusterFrame.reply,
  clusterFrame.replyWithHeaders,
  clusterFrame.failure,
];

export interface PeerOptions {
  readonly connected: Connected;
  /** Name of the cluster. */
  readonly name: string;
  readonly signer: Signer | undefined;
  /** Id of the loop, unique in the whole cluster: 32 hexadecimal digits. */
  readonly sender: string;
  readonly local: Locality;
}

interface Pending {
  readonly address: string;
  readonly waiter: Waiter;
}

interface Subscriptions {
  readonly queue: NatsSubscription[];
  all: NatsSubscription | undefined;
}

export class ClusterPeer implements Uplink {
  /** Resolves when the connection is closed for good, with the error that closed it. */
  readonly closed: Promise<unknown>;
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  readonly #subjects: Subjects;
  readonly #wire: ClusterWire;
  readonly #attached: AttachedUplink;
  readonly #subscriptions = new Map<string, Subscriptions>();
  readonly #pending = new Map<number, Pending>();
  readonly #probes = new Probes({
    newNumber: () => this.#newNumber(),
    probe: (address, number) => this.#probe(address, number),
  });
  #lastRequest = nobody;
  readonly #forwarding: Forwarding;

  /** Throws as `EventBus.attachUplink`; the caller then closes the connection. */
  constructor(bus: EventBus, { connected, name, signer, sender, local }: PeerOptions) {
    this.#connection = connected.connection;
    this.#inbox = connected.inbox;
    this.#subjects = new Subjects(name);
    const listener = {
      drained: () => this.#attached.drained(),
      lost: () => this.#probes.loseAll(), // it is unknown which messages have arrived
      refused: (error: unknown) => this.#refused(error),
    };
    this.#wire = new ClusterWire(this.#connection, { signer, sender, listener });
    this.#forwarding = new Forwarding(this.#connection);
    this.#attached = bus.attachUplink(this, local);
    listen(this.#connection, `${this.#inbox}.*`, this.#receiveAnswer);
    this.closed = connected.closed.then((error) => {
      this.#ended();
      return error;
    });
  }

  /** Handles an error of the server, such as a missing permission: it arrives some time after the call. */
  #refused(error: unknown): void {
    const subject: unknown = Reflect.get(Object(error), 'subject');
    if (String(subject).startsWith(microPrefix)) return; // announced by micro.ts, once for each service
    const why = refused(`the NATS server does not permit it: ${messageOf(error)}`, error);
    announcements.clusterRefused.publish({ why: why.message });
    for (const [number, { address, waiter }] of this.#pending) {
      if (this.#subjects.send(address) !== subject) continue;
      this.#pending.delete(number);
      waiter.settle({ isDone: false, error: why });
    }
  }

  get hasRoom(): boolean {
    return this.#wire.hasRoom;
  }

  check(address: string): void {
    this.#subjects.check(address);
  }

  announce(address: string, consumers: number): void {
    if (address.startsWith(reservedPrefix) && !address.startsWith(streamPrefix)) return;
    if (this.#isLeaving) return; // the remaining consumers will soon be those of this machine only
    const own = this.#subscriptions.get(address) ?? { queue: [], all: undefined };
    this.#subscriptions.set(address, own);
    while (own.queue.length < consumers) {
      own.queue.push(this.#subscribe(this.#subjects.send(address), address, queueGroup));
    }
    while (own.queue.length > consumers) drain(own.queue.pop());
    if (consumers > 0) own.all ??= this.#subscribe(this.#subjects.publish(address), address);
    else {
      drain(own.all);
      this.#subscriptions.delete(address);
    }
  }

  advertise(service: AdvertisedService): () => void {
    if (this.#isLeaving) return () => {};
    const subject = this.#subjects.send(service.address);
    return answerMicro(this.#connection, service, { subject, queueGroup });
  }

  /** True while leaving or after it: nothing new arrives. Until it is closed messages still go out. */
  get #isLeaving(): boolean {
    return this.#connection.isDraining() || this.#connection.isClosed();
  }

  #subscribe(subject: string, address: string, queue?: string): NatsSubscription {
    const isPublished = queue === undefined;
    const onMessage = (message: NatsMessage): void => this.#receive(message, address, isPublished);
    return listen(this.#connection, subject, onMessage, { queue });
  }

  deliver({ address, body, headers, waiter, isPublished, isReached }: Delivery): void {
    const hasHeaders = headers !== noHeaders;
    const kind = hasHeaders ? clusterFrame.messageWithHeaders : clusterFrame.message;
    const value = hasHeaders ? [body, headers] : body;
    const post = (reply: string | undefined): void => {
      const subject = isPublished ? this.#subjects.publish(address) : this.#subjects.send(address);
      this.#wire.post(kind, subject, value, reply, address);
    };
    const send = (number: number): void => post(`${this.#inbox}.${number}`);
    if (isReached) post(undefined);
    else if (waiter === undefined) send(nobody);
    else if (waiter instanceof RemoteWaiter) {
      this.#forwarding.passOn(address, waiter, this.#wire.isConnected, post);
    } else {
      if (this.#isLeaving) throw clusterClosed(); // no answer would arrive
      this.#withNumber(address, waiter, send);
    }
  }

  #newNumber(): number {
    this.#lastRequest += 1;
    return this.#lastRequest;
  }

  /** Calls `send` with a number for `waiter`; the number is freed when the waiter settles or gives up. */
  #withNumber(address: string, waiter: Waiter, send: (number: number) => void): void {
    const number = this.#newNumber();
    this.#pending.set(number, { address, waiter });
    waiter.whenGivenUp(() => this.#pending.delete(number));
    try {
      send(number);
    } catch (error) {
      this.#pending.delete(number);
      throw error;
    }
  }

  #receive(message: NatsMessage, address: string, isPublished: boolean): void {
    this.#wire.open(message, ({ kind, sender, number }, read) => {
      if (kind === clusterFrame.probe) {
        this.#present(message.reply, address);
        return;
      }
      checkKind(kind, messageKinds, 'message');
      const origin = isPublished ? { sender, number } : undefined;
      const waiter = this.#waiterAt(message.reply, address);
      try {
        const { body, headers } = contentOf(kind, clusterFrame.messageWithHeaders, read);
        this.#attached.receive({ address, body, headers, waiter, isPublished, origin });
      } catch (error) {
        const why = readError(error);
        if (waiter === undefined) announcements.busDropped.publish({ address, why: why.message });
        else waiter.settle({ isDone: false, error: why });
      }
    });
  }

  #present(reply: string | undefined, address: string): void {
    if (reply === undefined) return;
    untilClosed(() => this.#wire.post(clusterFrame.present, reply, undefined, undefined, address));
  }

  /** Returns the waiter for an answer at `reply`. */
  #waiterAt(reply: string | undefined, address: string): Waiter | undefined {
    if (!expectsAnswer(reply)) return undefined;
    return new RemoteWaiter(reply, (outcome) => this.#answer(reply, outcome, address));
  }

  /** Sends an answer. After the cluster is left it is dropped, as by a loop that has ended. */
  #answer(reply: string, outcome: Outcome, address: string): void {
    const isSent = untilClosed(() => this.#postAnswer(reply, outcome, address));
    if (isSent || !outcome.isDone) return;
    outcome.waiter?.settle({ isDone: false, error: clusterClosed() });
  }

  #postAnswer(reply: string, outcome: Outcome, address: string): void {
    if (!outcome.isDone) {
      postFailure(outcome.error, (body) => {
        this.#wire.post(clusterFrame.failure, reply, body, undefined, address);
      });
      return;
    }
    const { body, headers, waiter } = outcome;
    const hasHeaders = headers !== noHeaders;
    const kind = hasHeaders ? clusterFrame.replyWithHeaders : clusterFrame.reply;
    const value = hasHeaders ? [body, headers] : body;
    if (waiter === undefined) this.#wire.post(kind, reply, value, undefined, address);
    else {
      this.#withNumber(address, waiter, (number) =>
        this.#wire.post(kind, reply, value, `${this.#inbox}.${number}`, address),
      );
    }
  }

  readonly #receiveAnswer = (message: NatsMessage): void => {
    const number = Number(message.subject.slice(this.#inbox.length + 1));
    if (isReportOfNobody(message)) this.#nobodyThere(number);
    else if (number !== nobody) this.#readAnswer(message, number); // a stream of JetStream acknowledges there
  };

  #readAnswer(message: NatsMessage, number: number): void {
    this.#wire.open(message, ({ kind, time }, read) => {
      if (kind === clusterFrame.otherClock) {
        this.#refusedForTime(number, time);
        return;
      }
      if (kind === clusterFrame.present) {
        this.#probes.answered(number);
        return;
      }
      checkKind(kind, answerKinds, 'answer');
      const outcome = this.#outcomeOf(kind, message, read);
      const pending = this.#takePending(number);
      if (pending !== undefined) pending.waiter.settle(outcome);
      else if (outcome.isDone) outcome.waiter?.settle({ isDone: false, error: noRequester() });
    });
  }

  /** `time`: that of the receiver's clock. */
  #refusedForTime(number: number, time: number): void {
    const pending = this.#takePending(number);
    if (pending === undefined) return;
    const what = `a request to ${pending.address}`;
    const error = clocksDiffer(what, 'its receiver', (time - Date.now()) / 1000);
    pending.waiter.settle({ isDone: false, error });
  }

  #takePending(number: number): Pending | undefined {
    const pending = this.#pending.get(number);
    this.#pending.delete(number); // also the entry of a passed-on request, which never ends by itself
    return pending;
  }

  #outcomeOf(kind: number, { reply, subject }: NatsMessage, read: () => unknown): Outcome {
    try {
      if (kind === clusterFrame.failure) {
        return { isDone: false, error: parseFailure(read()) };
      }
      const { body, headers } = contentOf(kind, clusterFrame.replyWithHeaders, read);
      return { isDone: true, body, headers, waiter: this.#waiterAt(reply, subject) };
    } catch (error) {
      return { isDone: false, error: readError(error) };
    }
  }

  #nobodyThere(number: number): void {
    if (this.#probes.missed(number)) return;
    if (number === nobody) this.#attached.undelivered();
    const pending = this.#takePending(number);
    pending?.waiter.settle({ isDone: false, error: noHandlers(pending.address) });
  }

  watch(address: string, onGone: (found: Found, hasAnswered: boolean) => void): () => void {
    return this.#probes.watch(address, onGone);
  }

  #probe(address: string, number: number): boolean {
    if (!this.#wire.isConnected) return false;
    const subject = this.#subjects.send(address);
    try {
      this.#wire.post(clusterFrame.probe, subject, undefined, `${this.#inbox}.${number}`, address);
      return true;
    } catch {
      return false;
    }
  }

  flush(): Promise<void> {
    return this.#wire.flush();
  }

  catchUp(): Promise<void> {
    return this.#wire.catchUp();
  }

  /** Closes after all messages have gone out; messages that arrive until then are handled. */
  async close(): Promise<void> {
    await this.#wire.close();
    await this.closed;
  }

  #ended(): void {
    this.#probes.close();
    this.#wire.ended();
    this.#attached.ended();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { waiter } of pending) waiter.settle({ isDone: false, error: clusterClosed() });
    this.#probes.loseAll();
  }
}

/** Returns whether `post` sent; false when the connection is closed or closing. */
function untilClosed(post: () => void): boolean {
  try {
    post();
    return true;
  } catch (error) {
    if (hasCode(error, 'CLUSTER_CLOSED')) return false;
    throw error;
  }
}

/** Throws `CLUSTER_REFUSED` for a frame of a kind that does not belong there. */
function checkKind(kind: number, kinds: readonly number[], what: string): void {
  if (!kinds.includes(kind)) throw refused(`a frame of kind ${kind} is no ${what}`);
}

function contentOf(kind: number, withHeaders: number, read: () => unknown) {
  if (kind !== withHeaders) return { body: read(), headers: noHeaders };
  const [body, headers] = parseMessage(read());
  return { body, headers };
}
