import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMemory, parseReady, parseTicket } from '../../src/worker/protocol.js';

const ticket = {
  workerId: 1,
  parentPid: 2,
  parentThread: 5,
  channel: { kind: 'socket' },
  concurrentTasks: 3,
  maxRssBytes: 4,
  pinnedCores: [0, 1],
  niceIncrement: 0,
  loads: undefined,
  parcels: undefined,
  isPartition: false,
  spaceFd: 7,
};

test('a ticket is read as it was written', () => {
  assert.deepEqual(parseTicket(JSON.parse(JSON.stringify(ticket))), ticket);
});

for (const [what, value] of [
  ['nothing', null],
  ['a text', 'ticket'],
  ['no number of the worker', { ...ticket, workerId: 'one' }],
  ['no cores', { ...ticket, pinnedCores: 2 }],
  ['no nice value', { ...ticket, niceIncrement: '1' }],
  ['no descriptor of the memory', { ...ticket, spaceFd: '7' }],
] as const) {
  test(`a worker that is started with ${what} refuses with WORKER_PROTOCOL`, () => {
    assert.throws(() => parseTicket(value), { code: 'WORKER_PROTOCOL' });
  });
}

test('a ready message is a number and a text, anything else is WORKER_PROTOCOL', () => {
  assert.deepEqual(parseReady([7, 'v22']), { pid: 7, nodeVersion: 'v22' });
  for (const value of [undefined, [7], ['7', 'v22'], {}]) {
    assert.throws(() => parseReady(value), { code: 'WORKER_PROTOCOL' });
  }
});

test('memory statistics of a worker are numbers, anything else is WORKER_PROTOCOL', () => {
  const pauses = { count: 1, totalMs: 2, maxMs: 3 };
  const heap = { usedBytes: 1, totalBytes: 2, limitBytes: 3, externalBytes: 4 };
  const gc = { minor: pauses, major: pauses, incremental: pauses, weakCallbacks: pauses };
  const told = { atMs: 5, heap, gc };
  assert.deepEqual(parseMemory(told), told);
  for (const value of [
    undefined,
    { ...told, atMs: 'now' },
    { ...told, heap: null },
    { ...told, heap: { ...heap, limitBytes: '3' } },
    { ...told, gc: { minor: pauses } },
    { ...told, gc: { ...gc, major: { ...pauses, totalMs: null } } },
  ]) {
    assert.throws(() => parseMemory(value), { code: 'WORKER_PROTOCOL' });
  }
});
