// Streams that the accepting side refuses.

import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { Bus } from '../../src/bus/index.js';
import type { ErrorCode } from '../../src/errors.js';

type Accepting = (stream: Duplex, after: () => Promise<void>) => unknown;

/** Each way in which the accepting side fails, and the code and text of the error that the opener gets. */
export const refusals: readonly [name: string, ErrorCode, RegExp, Accepting][] = [
  ...(['at once', 'later'] as const).flatMap((when) => {
    const wait = async (after: () => Promise<void>) => {
      if (when === 'later') await after();
    };
    const ways: [string, ErrorCode, RegExp, Accepting][] = [
      [
        `rejects ${when}`,
        'BUS_HANDLER_ERROR',
        /the consumer of .* threw: not this one/,
        async (_, after) => {
          await wait(after);
          throw new Error('not this one');
        },
      ],
      [
        `destroys with an error ${when}`,
        'BUS_CONSUMER_LOST',
        /the other end was destroyed: not this one/,
        async (stream, after) => {
          await wait(after);
          stream.destroy(new Error('not this one'));
        },
      ],
      [
        `destroys without an error ${when}`,
        'BUS_CONSUMER_LOST',
        /the other end was destroyed: without an error/,
        async (stream, after) => {
          await wait(after);
          stream.destroy();
        },
      ],
    ];
    return ways;
  }),
  [
    'throws',
    'BUS_HANDLER_ERROR',
    /the consumer of .* threw: not this one/,
    () => {
      throw new Error('not this one');
    },
  ],
];

/**
 * Opens a stream that the other side refuses. Resolves to the error of the call, or of the stream where it `isLater`;
 * `undefined`: the call has not rejected.
 */
export async function refusedBy(bus: Bus, address: string, isLater: boolean): Promise<unknown> {
  const [opened] = await Promise.allSettled([bus.openStream(address)]);
  if (opened.status === 'rejected') return opened.reason;
  if (!isLater) return undefined;
  const [error] = await once(opened.value, 'error');
  return error;
}
