// Folders that a partition may read or write: nothing around them is seen, and only plain files and folders stay in
// them when it is gone. Links, which the program may follow, and files with the rights of their owner do not. Each
// attempt has the layer of a sandbox that refuses it.

import assert from 'node:assert/strict';
import fs, { lstatSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertWell, folder, type Limits, skipWall, wallPool, walls } from './hostile.js';
import { outcome, sandboxPool, skip } from './support.js';

for (const wall of walls) {
  test(`${wall}: a folder to read or write shows nothing around it`, {
    skip: skipWall(wall),
  }, async (t) => {
    const [read, write, secret] = [folder(t), folder(t), folder(t)];
    writeFileSync(join(secret, 'key'), 'secret');
    writeFileSync(join(read, 'file'), 'given');
    for (const at of [read, write]) symlinkSync(secret, join(at, 'out'));
    const pool = wallPool(t, wall, { read: [read], write: [write] });
    const seen = await pool.run(
      async (from, to) => ({
        read: fs.readFileSync(`${from}/file`, 'utf8'),
        'mounts: changed': await outcome(() => fs.appendFileSync(`${from}/file`, 'x')),
        'mounts: made': await outcome(() => fs.writeFileSync(`${from}/new`, 'x')),
        'mounts: removed': await outcome(() => fs.unlinkSync(`${from}/file`)),
        written: await outcome(() => fs.writeFileSync(`${to}/new`, 'x')),
        'mounts: followed': await outcome(() => fs.readFileSync(`${to}/out/key`)),
        'mounts: followed from read': await outcome(() => fs.readFileSync(`${from}/out/key`)),
        'mounts: through a link': await outcome(() => fs.writeFileSync(`${to}/out/new`, 'x')),
        above: await outcome(() => fs.readdirSync(`${to}/..`).length),
        'mounts: moved': await outcome(() => fs.renameSync(`${to}/new`, `${from}/moved`)),
        'mounts: aside': await outcome(() => fs.renameSync(`${to}/new`, `${to}/../${'aside'}`)),
      }),
      read,
      write,
    );
    assert.deepEqual(seen, {
      read: 'given',
      'mounts: changed': 'EROFS',
      'mounts: made': 'EROFS',
      'mounts: removed': 'EROFS',
      written: 'done',
      'mounts: followed': 'ENOENT',
      'mounts: followed from read': 'ENOENT',
      'mounts: through a link': 'ENOENT',
      above: 'done',
      'mounts: moved': 'EXDEV',
      'mounts: aside': 'EXDEV',
    });
    await assertWell(pool);
    assert.deepEqual(readdirSync(read).sort(), ['file', 'out']);
    assert.deepEqual(readdirSync(write).sort(), ['new', 'out']);
    assert.deepEqual(readdirSync(secret), ['key']);
    assert.equal(readFileSync(join(read, 'file'), 'utf8'), 'given');
  });

  test(`${wall}: only plain files and folders stay where it may write`, {
    skip: skipWall(wall),
  }, async (t) => {
    const write = folder(t);
    const before = lstatSync(write).mode;
    const pool = wallPool(t, wall, { write: [write] });
    const codes = await pool.run(async (to) => {
      fs.writeFileSync(`${to}/plain`, 'x');
      return {
        'seccomp: link': await outcome(() => fs.symlinkSync('/etc/passwd', `${to}/link`)),
        'seccomp: hard link': await outcome(() => fs.linkSync(`${to}/plain`, `${to}/hard-link`)),
        // The answers to these may be those of the kernel inside: what counts is the mode outside.
        mode: await outcome(() => fs.chmodSync(`${to}/plain`, 0o6777)).then(() => 'tried'),
        made: await outcome(() => fs.closeSync(fs.openSync(`${to}/made`, 'w', 0o6777))).then(
          () => 'tried',
        ),
        folder: await outcome(() => fs.mkdirSync(`${to}/folder`, 0o6777)).then(() => 'tried'),
        own: await outcome(() => fs.chmodSync(to, 0o7777)).then(() => 'tried'),
        socket: await new Promise((resolve) => {
          const server = createServer().listen(`${to}/socket`);
          server.once('error', () => resolve('tried')).once('listening', () => resolve('tried'));
        }),
      };
    }, write);
    assert.deepEqual(codes, {
      'seccomp: link': 'EPERM',
      'seccomp: hard link': 'EPERM',
      ...{ mode: 'tried', made: 'tried', folder: 'tried', own: 'tried', socket: 'tried' },
    });
    await assertWell(pool);
    assert.equal(lstatSync(write).mode, before);
    assert.ok(readdirSync(write).includes('plain'));
    for (const name of readdirSync(write)) {
      const found = lstatSync(join(write, name));
      assert.ok(found.isFile() || found.isDirectory(), name);
      assert.equal(found.mode & 0o6000, 0, `${name} has mode ${found.mode.toString(8)}`);
    }
  });
}

test('a link that is left as package.json is not followed by the next start', {
  skip,
}, async (t) => {
  const [write, secret] = [folder(t), folder(t)];
  writeFileSync(join(secret, 'key'), 'secret');
  const limits: Limits = { read: [write], write: [write], allow: ['no-seccomp', 'no-landlock'] };
  const pool = sandboxPool(t, limits);
  // Below /tmp the target is there on both sides.
  await pool.run(
    (at, to) => fs.symlinkSync(to, `${at}/package.json`),
    write,
    `../${secret.split('/').at(-1)}/key`,
  );
  await pool.destroy();
  const next = sandboxPool(t, limits);
  const path = join(secret, 'key');
  assert.equal(await next.run((at) => outcome(() => fs.readFileSync(at)), path), 'ENOENT');
  await assertWell(next);
});
