// What the client of NATS calls. An error that is thrown into it ends its connection, and it prints: so nothing
// is thrown into it.

import { announcements, messageOf } from '../internal/index.js';
import type { NatsConnection, NatsMessage, NatsStatus, NatsSubscription } from './nats.js';

function tell(error: unknown): void {
  announcements.clusterRefused.publish({ why: messageOf(error) });
}

/** What `work` throws is told. */
export function guarded(work: () => void, onError: (error: unknown) => void = tell): void {
  try {
    work();
  } catch (error) {
    onError(error);
  }
}

export interface ListenOptions {
  readonly queue?: string | undefined;
  /** What the server refuses, and what `hear` throws. Default: it is told. */
  readonly onError?: (error: unknown) => void;
}

export function listen(
  connection: NatsConnection,
  subject: string,
  hear: (message: NatsMessage) => void,
  { queue, onError = tell }: ListenOptions = {},
): NatsSubscription {
  return connection.subscribe(subject, {
    ...(queue !== undefined && { queue }),
    callback: (error, message) => {
      if (error === null) guarded(() => hear(message), onError);
      else onError(error);
    },
  });
}

/** What the client says of its connection, until that ends. */
export function follow(connection: NatsConnection, hear: (status: NatsStatus) => void): void {
  const read = async (): Promise<void> => {
    for await (const status of connection.status()) guarded(() => hear(status));
  };
  void read().catch(() => {}); // it ends with the connection
}
