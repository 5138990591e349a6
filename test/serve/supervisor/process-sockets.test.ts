// The sockets of one process, without a process: what is sent to it when its loops listen and stop.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeBinding } from '../../../src/native.js';
import type { Envelope, ListenAnswer, ListenQuery } from '../../../src/serve/protocol.js';
import { closeFds } from '../../../src/serve/shared/dup-fds.js';
import { ProcessSockets } from '../../../src/serve/supervisor/process-sockets.js';
import { openDescriptors } from '../../support/index.js';

const skip = nativeBinding() === undefined && 'descriptors are duplicated natively';

const query: ListenQuery = {
  address: '127.0.0.1',
  port: 80,
  addressType: 4,
  backlog: 0,
  isV6Only: false,
  index: 0,
};
const bound: ListenAnswer = { number: 3, address: { address: '::', port: 80, family: 'IPv6' } };
const answer = { type: 'answer', answer: bound };
const adopt = { type: 'adopt', number: 3 };
const drop = { type: 'drop', number: 3 };

function make({ queue = 0, isFull = false } = {}) {
  const sent: unknown[] = [];
  const queues: number[] = [];
  const state = { isUsable: true, answer: bound };
  const sockets = new ProcessSockets(
    {
      listen: async () => state.answer,
      of: (_, queue) => {
        queues.push(queue);
        return { fd: 0 };
      },
    },
    queue,
    {
      post({ loop, body, fds = [] }: Envelope) {
        closeFds(fds);
        if (isFull && fds.length > 0) throw new Error('full');
        sent.push(loop === undefined ? body : { loop, ...Object(body) });
      },
    },
    () => state.isUsable,
  );
  return { sockets, sent, queues, state };
}

test('a process has a socket before its first loop has the answer, and has it once', {
  skip,
}, async () => {
  const { sockets, sent } = make();
  await sockets.listen(1, 1, query);
  await sockets.listen(2, 1, query);
  assert.deepEqual(sent, [adopt, { loop: 1, ...answer }, { loop: 2, ...answer }]);
});

test('a process drops a socket with the last loop that listens there, and may get it again', {
  skip,
}, async () => {
  const { sockets, sent } = make();
  await sockets.listen(1, 1, query);
  await sockets.listen(2, 1, query);
  sent.length = 0;
  sockets.unlisten(1, 3);
  assert.deepEqual(sent, []);
  sockets.unlisten(2); // it has ended
  assert.deepEqual(sent, [drop]);
  assert.equal(sockets.mayUse(3, false), false); // its program has closed it
  sockets.forget(3);
  assert.equal(sockets.mayUse(3, false), true); // another socket, with the same number
  assert.equal(sockets.mayUse(3, true), false);
  await sockets.listen(1, 2, query);
  assert.deepEqual(sent, [drop, adopt, { loop: 1, ...answer }]);
  assert.equal(sockets.mayUse(3, true), true);
});

test('a loop or a process that has ended meanwhile gets nothing', { skip }, async () => {
  const { sockets, sent, state } = make();
  const first = sockets.listen(1, 1, query);
  sockets.unlisten(1);
  await first;
  const second = sockets.listen(2, 1, query);
  state.isUsable = false;
  await second;
  assert.deepEqual(sent, []);
});

test('a refusal of the system is an answer, and no socket', { skip }, async () => {
  const { sockets, sent, state } = make();
  Object.assign(state, { answer: { errno: -98 } });
  assert.deepEqual(await sockets.listen(1, 1, query), { errno: -98 });
  assert.deepEqual(sent, [{ loop: 1, type: 'answer', answer: { errno: -98 } }]);
  assert.equal(sockets.isEmpty, true);
});

test('sockets of a process that has ended go to another one, for each address', {
  skip,
}, async () => {
  const { sockets, sent, queues } = make({ queue: 1 });
  sockets.adopt(4); // listens nowhere yet
  assert.deepEqual(sent, []);
  await sockets.listen(1, 1, query);
  sockets.adopt(5);
  assert.deepEqual(sent, [adopt, adopt, { loop: 1, ...answer }, adopt]);
  assert.deepEqual(queues, [1, 4, 5]);
});

test('a process that takes no descriptor gets no answer, and none stays open', {
  skip,
}, async () => {
  const { sockets, sent } = make({ isFull: true });
  const before = openDescriptors().length;
  await sockets.listen(1, 1, query);
  assert.deepEqual(sent, []);
  assert.equal(sockets.isEmpty, true);
  assert.equal(openDescriptors().length, before);
});

test('where loops listen themselves, each gets the handle with its answer, and the process none', async () => {
  const handle = {
    fd: 7,
    onconnection: undefined,
    listen: () => 0,
    ref() {},
    unref() {},
    close() {},
  };
  const sent: Envelope[] = [];
  const sockets = new ProcessSockets(
    { listen: async () => bound, of: () => ({ handle }) },
    0,
    { post: (envelope: Envelope) => void sent.push(envelope) },
    () => true,
  );
  await sockets.listen(1, 5, query);
  await sockets.listen(2, 6, query);
  assert.deepEqual(sent, [
    { loop: 1, id: 5, body: answer, handle },
    { loop: 2, id: 6, body: answer, handle },
  ]);
});
