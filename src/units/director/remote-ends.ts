// Monitors of a deployment on the side of a loop: the director sends the ends of its instances to an address of
// each monitor, as long as that has its consumer.

import { randomUUID } from 'node:crypto';
import { type Bus, type FollowEnds, reservedPrefix } from '../../bus/index.js';
import { ask } from '../ask.js';
import { directorAddress, parseInstanceEnd } from '../protocol.js';
import { noInstance } from './instance-ends.js';

/** Returns how to follow the ends of a deployment of the director. */
export function remoteEnds(
  bus: Bus,
  deployment: { readonly id: number; readonly name: string },
): FollowEnds {
  return (listener) => {
    const to = `${reservedPrefix}ends:${randomUUID()}`;
    const consumer = bus.consumer(to, ({ body }) => listener(parseInstanceEnd(body)));
    const begin = async (): Promise<void> => {
      const message = { type: 'monitor', deployment: deployment.id, to } as const;
      const isThere = await ask(bus, directorAddress, message, Infinity);
      if (isThere === false && !consumer.isClosed) listener(noInstance(deployment));
    };
    begin().catch((error: unknown) => {
      if (!consumer.isClosed) warn(error);
    });
    return consumer;
  };
}

/** Sends ends to the consumer at `to`, until it is closed or lost. */
export function sendEnds(bus: Bus, follow: FollowEnds, to: string): void {
  const registration = follow((end) => {
    try {
      bus.send(to, end);
    } catch (error) {
      warn(error); // too much waits for that loop
    }
  });
  const monitor = bus.monitor(to, () => {
    registration.close();
    monitor.close();
  });
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
