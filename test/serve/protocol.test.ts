// Messages of processes and loops to their supervisor: invalid ones harm no other process.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../src/errors.js';
import {
  type Envelope,
  parseEnvelope,
  parseForProcess,
  parseFromLoop,
  parseFromProcess,
} from '../../src/serve/protocol.js';

const query = {
  address: null,
  port: 0,
  addressType: 4,
  backlog: 0,
  isV6Only: false,
  index: 0,
  ticketKeys: 'ab',
};
const error = { message: 'no', code: undefined, stack: 'at' };

/** Each with the fields that have to be there, and right. */
const ofLoop: [Envelope, string[]][] = [
  [{ loop: 2, id: 1, body: { type: 'listen', query } }, ['query']],
  [{ loop: 2, body: { type: 'unlisten', number: 3 } }, ['number']],
  [{ loop: 2, id: 1, body: { type: 'acquire' }, fds: [1, 2, 3, 4] }, []],
  [{ loop: 2, id: 1, body: { type: 'release' } }, []],
  [{ loop: 2, body: { type: 'access', lines: 'GET /' } }, ['lines']],
  [{ loop: 2, body: { type: 'readiness', obstacle: 'the database is down' } }, []],
  [{ loop: 2, body: { type: 'join' } }, []],
  [{ loop: 2, body: { type: 'offer', to: 4 }, fds: [1, 2, 3] }, ['to']],
  [{ loop: 2, body: { type: 'offerAt', to: 4, path: '/run/a.sock' } }, ['to', 'path']],
];
const toProcess: [Envelope, string[]][] = [
  [{ body: { type: 'ready' } }, []],
  [{ body: { type: 'serving' } }, []],
  [{ body: { type: 'left' } }, []],
  [{ body: { type: 'drained' } }, []],
  [{ body: { type: 'failed', error } }, ['error']],
  [{ id: 1, body: { type: 'startThread', entry: 'file:///a.js', data: { a: 1 } } }, ['entry']],
  [{ id: 1, body: { type: 'endThread' } }, []],
  [{ id: 1, body: { type: 'changeFolder', folder: '/' } }, ['folder']],
];
const ofProcess: [Envelope, string[]][] = [
  [{ body: { type: 'ready' } }, []],
  [{ body: { type: 'failed', error } }, ['error']],
  [{ body: { type: 'leaving' } }, []],
  [{ body: { type: 'loopEnded', ended: 3 } }, ['ended']],
  [{ body: { type: 'loopFailed', index: 0, error } }, ['index', 'error']],
  [{ body: { type: 'loopLost', index: 0, error, delayMs: 50 } }, ['index', 'error', 'delayMs']],
  [{ body: { type: 'stack', index: 0, stack: undefined } }, ['index']],
  [{ body: { type: 'rows', rows: [[0, 2, 7]] } }, ['rows']],
];

const receivers = [
  ['a loop', parseFromLoop, ofLoop],
  ['a loop to its process', parseForProcess, toProcess],
  ['a process', parseFromProcess, ofProcess],
] as const;

for (const [whose, parse, valid] of receivers) {
  test(`messages of ${whose} arrive unchanged`, () => {
    for (const [envelope] of valid) {
      const { id = 0, fds = [] } = envelope;
      assert.deepEqual(parse(parseEnvelope(envelope)), { id, fds, ...Object(envelope.body) });
    }
  });

  test(`anything but a message of ${whose} is refused`, () => {
    const isRefused = (body: unknown): void => {
      try {
        parse({ body });
      } catch (error) {
        assert.ok(hasCode(error, 'WORKER_PROTOCOL'), String(error));
      }
    };
    fc.assert(fc.property(fc.jsonValue(), isRefused));
    for (const body of [undefined, null, 1, [], {}, { type: 'unknown' }, { type: 'toString' }]) {
      assert.throws(() => parse({ body }), { code: 'WORKER_PROTOCOL' });
    }
  });

  test(`a message of ${whose} with a field that is missing or of another kind is refused`, () => {
    const kinds = [undefined, null, -2, 0.5, {}, [], true];
    const fields = valid.flatMap(([envelope, names]) =>
      ['type', ...names].map((name) => [envelope, name] as const),
    );
    for (const [envelope, name] of fields) {
      for (const wrong of kinds) {
        const isRight =
          (name === 'error' && wrong instanceof Object) ||
          (name === 'rows' && Array.isArray(wrong));
        const body = { ...Object(envelope.body), [name]: wrong };
        if (isRight) parse({ ...envelope, body });
        else assert.throws(() => parse({ ...envelope, body }), { code: 'WORKER_PROTOCOL' });
      }
    }
  });
}

test('a message in another direction is refused', () => {
  for (const [envelope] of ofProcess.slice(2)) {
    assert.throws(() => parseForProcess(envelope), { code: 'WORKER_PROTOCOL' });
    assert.throws(() => parseFromLoop(envelope), { code: 'WORKER_PROTOCOL' });
  }
  for (const [envelope] of ofLoop) {
    assert.equal(parseForProcess(envelope), undefined); // it is forwarded, unread
    assert.throws(() => parseFromProcess(envelope), { code: 'WORKER_PROTOCOL' });
  }
});

test('a request with another number of descriptors is refused', () => {
  for (const [envelope] of ofLoop.filter(([{ fds }]) => fds !== undefined)) {
    for (const fds of [[], [1], [1, 2, 3, 4, 5]]) {
      assert.throws(() => parseFromLoop({ ...envelope, fds }), { code: 'WORKER_PROTOCOL' });
    }
  }
});

test('anything but an envelope is refused', () => {
  for (const value of [
    undefined,
    null,
    1,
    { loop: -1, body: {} },
    { loop: null, body: {} },
    { loop: 'one', body: {} },
    { id: 0.5, body: {} },
    { fds: 3, body: {} },
    { fds: [-1], body: {} },
    { fds: ['1'], body: {} },
  ]) {
    assert.throws(() => parseEnvelope(value), { code: 'WORKER_PROTOCOL' });
  }
});
