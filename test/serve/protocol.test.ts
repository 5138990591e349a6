// Messages of processes to their supervisor: invalid ones harm no other process.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../src/errors.js';
import {
  type FromLoop,
  type FromProcess,
  parseFromLoop,
  parseFromProcess,
} from '../../src/serve/protocol.js';

const ofBoth: Extract<FromLoop, FromProcess>[] = [
  { type: 'ready' },
  { type: 'drained' },
  {
    type: 'listen',
    request: 1,
    query: {
      address: null,
      port: 0,
      addressType: 4,
      backlog: 0,
      isV6Only: false,
      index: 0,
      ticketKeys: 'ab',
    },
  },
  { type: 'failed', error: { message: 'no', code: undefined, stack: 'at' } },
  { type: 'release', request: 1 },
];
const ofProcess: FromProcess[] = [
  ...ofBoth,
  { type: 'acquire', loop: 0, request: 1 },
  { type: 'leaving' },
  { type: 'loopEnded', loop: 3 },
  { type: 'stack', index: 0, stack: undefined },
];
const ofLoop: FromLoop[] = [...ofBoth, { type: 'acquire', request: 1, fds: [1, 2, 3, 4] }];

test('messages arrive unchanged', () => {
  for (const message of ofProcess) assert.deepEqual(parseFromProcess(message), message);
  for (const message of ofLoop) assert.deepEqual(parseFromLoop(message), message);
});

for (const [whose, parse, valid] of [
  ['a process', parseFromProcess, ofProcess],
  ['a loop', parseFromLoop, ofLoop],
] as const) {
  test(`anything but a message of ${whose} is refused`, () => {
    const isRefused = (value: unknown): void => {
      try {
        parse(value);
      } catch (error) {
        assert.ok(hasCode(error, 'WORKER_PROTOCOL'), String(error));
      }
    };
    fc.assert(fc.property(fc.jsonValue(), isRefused));
    for (const value of [undefined, null, 1, [], {}, { type: 'unknown' }]) {
      assert.throws(() => parse(value), { code: 'WORKER_PROTOCOL' });
    }
  });

  test(`a message of ${whose} with a field that is missing or of another kind is refused`, () => {
    const kinds = fc.constantFrom<unknown>(undefined, null, -2, 0.5, {}, [], true);
    const damaged = fc
      .constantFrom(...valid.filter((message) => 'request' in message || 'loop' in message))
      .chain((message) =>
        fc.record({
          message: fc.constant(message),
          name: fc.constantFrom(...Object.keys(message)),
        }),
      );
    fc.assert(
      fc.property(damaged, kinds, ({ message, name }, value) => {
        assert.throws(() => parse({ ...message, [name]: value }), { code: 'WORKER_PROTOCOL' });
      }),
    );
  });
}
