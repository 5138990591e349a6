// Descriptors that another program has sent, and that make no channel.

import assert from 'node:assert/strict';
import { closeSync, openSync, readSync } from 'node:fs';
import { test } from 'node:test';
import { acceptFromProgram } from '../../src/channels/index.js';
import { nativeBinding, requireNative } from '../../src/native.js';

const skip = nativeBinding() === undefined && 'needs the native core';

test('a segment that cannot be opened leaves the bell to be closed', { skip }, () => {
  const held = new (requireNative().NativeDescriptors)();
  const file = openSync('/dev/null', 'r');
  const [ours = -1, theirs = -1] = held.createSocketPair();
  const fds = [held.duplicate(file), theirs];
  closeSync(file);
  const peer = held.release(ours);
  assert.throws(() => acceptFromProgram(fds, (fd) => held.release(fd)), {
    code: 'SEGMENT_CORRUPT',
  });
  held.closeAll();
  assert.equal(readSync(peer, Buffer.alloc(1)), 0); // the peer sees the end
  closeSync(peer);
});
