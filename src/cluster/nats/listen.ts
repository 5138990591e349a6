// Callbacks of the NATS client. An error thrown into the client ends its connection and is printed, so no
// error leaves these callbacks.

import { announcements, messageOf } from '../../lib/index.js';
import type { NatsConnection, NatsMessage, NatsStatus, NatsSubscription } from './nats.js';

function publishRefusal(error: unknown): void {
  announcements.clusterRefused.publish({ why: messageOf(error) });
}

/** Runs `work` and passes its error to `onError`. Default: announced as refused. */
export function guarded(
  work: () => void,
  onError: (error: unknown) => void = publishRefusal,
): void {
  try {
    work();
  } catch (error) {
    onError(error);
  }
}

export interface ListenOptions {
  readonly queue?: string | undefined;
  /** Called with refusals of the server and with errors of `onMessage`. Default: announced as refused. */
  readonly onError?: (error: unknown) => void;
}

export function listen(
  connection: NatsConnection,
  subject: string,
  onMessage: (message: NatsMessage) => void,
  { queue, onError = publishRefusal }: ListenOptions = {},
): NatsSubscription {
  return connection.subscribe(subject, {
    ...(queue !== undefined && { queue }),
    callback: (error, message) => {
      if (error === null) guarded(() => onMessage(message), onError);
      else onError(error);
    },
  });
}

/** Calls `onStatus` with each status of the connection, until the connection ends. */
export function follow(connection: NatsConnection, onStatus: (status: NatsStatus) => void): void {
  const read = async (): Promise<void> => {
    for await (const status of connection.status()) guarded(() => onStatus(status));
  };
  void read().catch(() => {}); // the iterator ends with the connection
}
