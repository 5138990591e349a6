// Requests of other loops of the cluster, and how they are passed on to other consumers. The answer goes straight to
// the requester, so nothing depends on the loop that passes them on. Not here: when that is due (bus/event-bus.ts).

import { noHandlers, type Outcome, type Waiter } from '../../bus/index.js';
import { guarded, listen } from '../nats/listen.js';
import type { NatsConnection, NatsMessage, NatsSubscription } from '../nats/nats.js';

/** A request that waits in another loop of the cluster. */
export class RemoteWaiter implements Waiter {
  /** Subject of the answer. */
  readonly reply: string;
  readonly settle: (outcome: Outcome) => void;

  constructor(reply: string, settle: (outcome: Outcome) => void) {
    this.reply = reply;
    this.settle = settle;
  }

  /** Empty: only the other side detects a timeout. */
  whenGivenUp(): void {}
}

export class Forwarding {
  readonly #connection: NatsConnection;
  /** False: the server does not permit to subscribe to the replies of other clients. */
  #maySeeReplies = true;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  /**
   * Calls `post` with the reply subject of a request. Servers report a missing consumer only to the client that
   * sends, and only if that is subscribed to the reply subject. Hence this one is subscribed until the server
   * has the request. It is not where the frame waits for room or for the connection: then the requester waits.
   */
  passOn(
    address: string,
    waiter: RemoteWaiter,
    isConnected: boolean,
    post: (reply: string) => void,
  ): void {
    const { reply } = waiter;
    const isOpen = isConnected && !this.#connection.isDraining() && !this.#connection.isClosed();
    const onMessage = (message: NatsMessage): void => {
      if (!isReportOfNobody(message)) return;
      guarded(() => waiter.settle({ isDone: false, error: noHandlers(address) }));
    };
    const onError = (): void => {
      this.#maySeeReplies = false; // then the requester waits for its time limit
    };
    const isPlain = !/[*>]/.test(reply); // without a secret anybody writes it
    const seen =
      isOpen && isPlain && this.#maySeeReplies
        ? listen(this.#connection, reply, onMessage, { onError })
        : undefined;
    try {
      post(reply);
    } finally {
      drain(seen);
    }
  }
}

/** Number of senders that expect no answer, except the report that there was no consumer. */
export const nobody = 0;

/** Returns whether somebody waits for an answer at this reply subject. */
export function expectsAnswer(reply: string | undefined): reply is string {
  return reply !== undefined && reply !== '' && !reply.endsWith(`.${nobody}`);
}

/** Returns whether the server reports that a message has found no subscriber. */
export function isReportOfNobody({ data, headers }: NatsMessage): boolean {
  return data.byteLength === 0 && headers?.code === 503;
}

/** Ends a subscription after the messages that are on their way. */
export function drain(subscription: NatsSubscription | undefined): void {
  subscription?.drain().catch(() => {}); // there is no connection: nothing to drain
}
