import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { libcOf, platformName } from '../../../src/lib/index.js';

const heads = {
  '\x7fELF /lib64/ld-linux-x86-64.so.2': 'gnu',
  '\x7fELF /lib/ld-musl-x86_64.so.1': 'musl',
  '\x7fELF /lib/ld-musl-aarch64.so.1': 'musl',
  'no executable at all': 'gnu',
  '': 'gnu',
};

test('the C library of an executable is the one whose dynamic linker it names', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-libc-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [head, libc] of Object.entries(heads)) {
    const file = join(folder, 'node');
    writeFileSync(file, head.padEnd(head === '' ? 0 : 9000, '\0'));
    assert.equal(libcOf(file), libc, head);
  }
  assert.equal(libcOf(join(folder, 'missing')), 'gnu');
  assert.equal(libcOf(folder), 'gnu');
});

test('this platform has the name under which its binary is built', async () => {
  const scripts = new URL('../../../../scripts/lib/platforms.mjs', import.meta.url).href;
  const { hostPlatform }: { hostPlatform: () => string } = await import(scripts);
  assert.equal(platformName(), hostPlatform());
});
