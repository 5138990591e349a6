// A simulated NATS server: it carries frames between connections of this process, and the test decides the
// fate of each. So rare events of a network happen here in every run.

import type { NatsConnection, NatsMessage } from '../../src/cluster/nats/nats.js';

type Callback = (error: Error | null, message: NatsMessage) => void;

interface Subscription {
  readonly subject: string;
  readonly queue: string | undefined;
  readonly callback: Callback;
  readonly connection: NatsConnection;
}

export interface Frame extends NatsMessage {
  /** Connection of the receiver. */
  readonly connection: NatsConnection;
}

/** Returns true when a subscriber of `pattern`, which may end with `.*`, gets messages to `subject`. */
function includes(pattern: string, subject: string): boolean {
  if (!pattern.endsWith('.*')) return pattern === subject;
  const start = pattern.slice(0, -1);
  return subject.startsWith(start) && !subject.slice(start.length).includes('.');
}

export class LossyNetwork {
  /** Number of copies of this frame that arrive; default: one. */
  copies: (frame: Frame) => number = () => 1;
  /** Index of the next frame to arrive, of `count` on their way; default: the first. */
  next: (count: number) => number = () => 0;
  readonly #subscriptions = new Set<Subscription>();
  readonly #way: (() => void)[] = [];
  #isRunning = false;

  /** True: no frame is on its way. */
  get isIdle(): boolean {
    return this.#way.length === 0;
  }

  connect(maxPayload = 2 ** 20): NatsConnection {
    let isClosed = false;
    const connection: NatsConnection = {
      info: { max_payload: maxPayload },
      publish: (subject, bytes, { reply } = {}) => {
        // A copy, as on a wire.
        this.publish({
          subject,
          data: Uint8Array.from(bytes),
          ...(reply !== undefined && { reply }),
        });
      },
      subscribe: (subject, { queue, callback }) => {
        const subscription = { subject, queue, callback, connection };
        this.#subscriptions.add(subscription);
        const unsubscribe = (): void => void this.#subscriptions.delete(subscription);
        return { unsubscribe, drain: async () => unsubscribe() };
      },
      flush: async () => {},
      drain: async () => {},
      close: async () => {
        isClosed = true;
        for (const each of this.#subscriptions) {
          if (each.connection === connection) this.#subscriptions.delete(each);
        }
      },
      closed: () => new Promise(() => {}),
      isClosed: () => isClosed,
      isDraining: () => false,
      status: async function* () {},
    };
    return connection;
  }

  publish(message: NatsMessage): void {
    const here = [...this.#subscriptions].filter(({ subject }) =>
      includes(subject, message.subject),
    );
    const single = here.filter(({ queue }) => queue === undefined);
    const queued = here.filter(({ queue }) => queue !== undefined);
    const one = queued[this.next(queued.length)];
    const receivers = one === undefined ? single : [...single, one];
    for (const receiver of receivers) this.#send(receiver, message);
    const { reply } = message;
    if (receivers.length > 0 || reply === undefined) return;
    this.publish({ subject: reply, data: new Uint8Array(), headers: { code: 503 } });
  }

  #send(receiver: Subscription, message: NatsMessage): void {
    const count = this.copies({ ...message, connection: receiver.connection });
    for (let sent = 0; sent < count; sent += 1) {
      this.#way.push(() => {
        if (this.#subscriptions.has(receiver)) receiver.callback(null, message);
      });
    }
    if (!this.#isRunning) setImmediate(this.#carry);
    this.#isRunning = true;
  }

  /** Delivers one frame a turn. */
  readonly #carry = (): void => {
    const [arrive] = this.#way.splice(this.next(this.#way.length), 1);
    arrive?.();
    this.#isRunning = this.#way.length > 0;
    if (this.#isRunning) setImmediate(this.#carry);
  };
}
