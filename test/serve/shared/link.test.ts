// The contract of links, on all that there are: between threads, between processes, in one thread.

import assert from 'node:assert/strict';
import { closeSync, fstatSync, openSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { type TestContext, test } from 'node:test';
import { acceptChannel, offerChannel, overSocket } from '../../../src/channels/index.js';
import { hasCode } from '../../../src/errors.js';
import { callNative, nativeBinding, requireNative } from '../../../src/native.js';
import { closeFds } from '../../../src/serve/shared/dup-fds.js';
import {
  type Link,
  type LinkListener,
  localLink,
  socketPort,
  threadPort,
  WireLink,
} from '../../../src/serve/shared/link.js';
import { ControlSocket } from '../../../src/worker/index.js';
import { openDescriptors, waitFor } from '../../support/index.js';

// Descriptors are counted here, and an agent opens one at its own time.
process.env['MANYCORE_AGENT'] = '0';

const skip = nativeBinding() === undefined && 'needs the native binary';

type Open = (t: TestContext, listener: LinkListener) => Link;

const kinds: [string, Open][] = [
  [
    'between threads',
    (t, listener) => {
      const offer = offerChannel('memory', { worker: 'thread', spin: false });
      const near = new WireLink(offer.open(undefined).channel, threadPort, {
        onEnvelope: () => {},
      });
      const far = new WireLink(acceptChannel(offer.ticket).channel, threadPort, listener);
      t.after(() => {
        near.close();
        far.close();
      });
      return near;
    },
  ],
  [
    'between processes',
    (t, listener) => {
      const [wire = -1, farWire = -1] = socketPair();
      const [control = -1, farControl = -1] = socketPair();
      const [socket, farSocket] = [new ControlSocket(control), new ControlSocket(farControl)];
      const near = new WireLink(overSocket(wire), socketPort(socket), { onEnvelope: () => {} });
      const far = new WireLink(overSocket(farWire), socketPort(farSocket), listener);
      t.after(() => {
        for (const each of [near, far, socket, farSocket]) each.close();
      });
      return near;
    },
  ],
  ['in one thread', (_, { onEnvelope }) => localLink(onEnvelope)],
];

function socketPair(): number[] {
  const descriptors = new (requireNative().NativeDescriptors)();
  return callNative(() => descriptors.createSocketPair().map((fd) => descriptors.release(fd)));
}

const folders = ['.', '..', tmpdir()];
const targets = folders.map((folder) => realpathSync(folder));

/** Opens descriptors of folders, each of another one. */
function openFolders(count: number): number[] {
  return folders.slice(0, count).map((folder) => openSync(folder, 'r'));
}

const inodeOf = (fd: number): number => fstatSync(fd).ino;

for (const [kind, open] of kinds) {
  test(`${kind}: envelopes arrive in order, each with its own descriptors`, { skip }, async (t) => {
    const arrived: unknown[] = [];
    const link = open(t, {
      onEnvelope: ({ loop, id, body, fds }) => {
        arrived.push({ loop, id, body, inodes: fds.map(inodeOf) });
        closeFds(fds);
      },
    });
    const fds = openFolders(3);
    const [one, two, three] = fds.map(inodeOf);
    link.post({ loop: 4, id: 7, body: { type: 'one' }, fds: fds.slice(0, 2) });
    link.post({ loop: 4, body: { type: 'two' } });
    link.post({ loop: 5, body: { type: 'three' }, fds: fds.slice(2) });
    await waitFor(() => arrived.length === 3);
    assert.deepEqual(arrived, [
      { loop: 4, id: 7, body: { type: 'one' }, inodes: [one, two] },
      { loop: 4, id: 0, body: { type: 'two' }, inodes: [] },
      { loop: 5, id: 0, body: { type: 'three' }, inodes: [three] },
    ]);
  });

  test(`${kind}: descriptors move with their envelope`, { skip }, async (t) => {
    let arrived: readonly number[] = [];
    const link = open(t, {
      onEnvelope: ({ fds }) => {
        arrived = fds;
      },
    });
    link.post({ body: {}, fds: openFolders(2) });
    await waitFor(() => arrived.length === 2);
    assert.equal(openDescriptors().filter((target) => targets.includes(target)).length, 2);
    closeFds(arrived);
  });
}

test('a post with descriptors that the other process does not take throws, and sends nothing', {
  skip,
}, async (t) => {
  const [, [, open] = assert.fail()] = kinds;
  const arrived: unknown[] = [];
  const link = open(t, {
    onEnvelope: ({ body, fds }) => {
      arrived.push(body);
      closeFds(fds);
    },
  });
  const tooMany = Array.from({ length: 300 }, () => openSync('.', 'r')); // the kernel's limit is 253
  assert.throws(() => link.post({ body: 'lost', fds: tooMany }), { code: 'NATIVE_REFUSED' });
  assert.equal(openDescriptors().filter((target) => targets.includes(target)).length, 0);
  link.post({ body: 'next', fds: openFolders(1) });
  await waitFor(() => arrived.length > 0);
  assert.deepEqual(arrived, ['next']);
});

test('what a listener throws reaches onError, with the envelope', { skip }, async (t) => {
  for (const [, open] of kinds.slice(0, 2)) {
    const errors: unknown[] = [];
    const link = open(t, {
      onEnvelope: () => {
        throw new Error('no');
      },
      onError: (error, envelope) => errors.push([String(error), envelope?.loop]),
    });
    link.post({ loop: 3, body: {} });
    await waitFor(() => errors.length > 0);
    assert.deepEqual(errors, [['Error: no', 3]]);
  }
});

test('an envelope whose descriptors have not come is refused', { skip }, async (t) => {
  const [wire = -1, farWire = -1] = socketPair();
  const [control = -1, farControl = -1] = socketPair();
  const farSocket = new ControlSocket(farControl);
  const errors: [unknown, number | undefined][] = [];
  const near = new WireLink(overSocket(wire), threadPort, { onEnvelope: () => {} });
  const far = new WireLink(overSocket(farWire), socketPort(farSocket), {
    onEnvelope: () => assert.fail('it was not whole'),
    onError: (error, envelope) => errors.push([error, envelope?.id]),
  });
  t.after(() => {
    closeSync(control);
    for (const each of [near, far, farSocket]) each.close();
  });
  near.post({ loop: 1, id: 9, body: {}, fds: [0] }); // named alone, not sent over the control socket
  await waitFor(() => errors.length > 0);
  const [[error, id] = []] = errors;
  assert.ok(hasCode(error, 'NATIVE_REFUSED'));
  assert.equal(id, 9);
});
