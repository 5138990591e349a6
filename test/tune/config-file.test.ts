import assert from 'node:assert/strict';
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { mergedConfig, readConfigFile, writeJson } from '../../src/tune/config-file.js';

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-tune-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

const advice = {
  loops: { processes: 2, loops: 1 },
  blockingThreads: 8,
  heapLimit: 512,
  gcThreads: 0,
  affinity: [0, 1],
};
const reasons = {
  loops: 'for loops',
  blockingThreads: 'for threads',
  heapLimit: 'for the heap',
  gcThreads: 'for the collector',
  affinity: 'for cores',
};

test('each line that was set has its reason beside it', () => {
  assert.deepEqual(mergedConfig({}, advice, reasons), {
    processes: 2,
    loops: 1,
    env: { UV_THREADPOOL_SIZE: '8' },
    nodeFlags: ['--max-old-space-size=512', '--single-threaded-gc'],
    affinity: [0, 1],
    reasons: {
      processes: 'for loops',
      loops: 'for loops',
      'env.UV_THREADPOOL_SIZE': 'for threads',
      'nodeFlags.--max-old-space-size': 'for the heap',
      'nodeFlags.--single-threaded-gc': 'for the collector',
      affinity: 'for cores',
    },
  });
});

test('untuned options, variables and flags stay, with their reasons', () => {
  const before = {
    app: 'server.js',
    processes: 4,
    env: { LOG: 'info', UV_THREADPOOL_SIZE: '1' },
    nodeFlags: ['--no-warnings', '--max_old_space_size=60'],
    reasons: {
      'env.UV_THREADPOOL_SIZE': 'old',
      'nodeFlags.--max-old-space-size': 'old',
      'nodeFlags.--max-semi-space-size': 'kept',
      processes: 'kept',
    },
  };
  const found = { blockingThreads: 8, heapLimit: 512 };
  const why = { blockingThreads: 'new', heapLimit: 'new' };
  assert.deepEqual(mergedConfig(before, found, why), {
    app: 'server.js',
    processes: 4,
    env: { LOG: 'info', UV_THREADPOOL_SIZE: '8' },
    nodeFlags: ['--no-warnings', '--max-old-space-size=512'],
    reasons: {
      'env.UV_THREADPOOL_SIZE': 'new',
      'nodeFlags.--max-old-space-size': 'new',
      'nodeFlags.--max-semi-space-size': 'kept',
      processes: 'kept',
    },
  });
});

test('a reason for one GC flag goes when the other is set', () => {
  const before = {
    nodeFlags: ['--v8-pool-size=1'],
    reasons: { 'nodeFlags.--v8-pool-size': 'old' },
  };
  const after = mergedConfig(before, { gcThreads: 0 }, { gcThreads: 'new' });
  assert.deepEqual(after, {
    nodeFlags: ['--single-threaded-gc'],
    reasons: { 'nodeFlags.--single-threaded-gc': 'new' },
  });
});

test('a file that is there is replaced through links, and nothing else is left', (t) => {
  const folder = folderOf(t);
  const [file, link] = [join(folder, 'real.json'), join(folder, 'link.json')];
  writeFileSync(file, '{}');
  symlinkSync(file, link);
  writeJson(link, { a: 1 });
  assert.ok(lstatSync(link).isSymbolicLink());
  assert.deepEqual(readConfigFile(file), { a: 1 });
  assert.deepEqual(readdirSync(folder).sort(), ['link.json', 'real.json']);
});

test('a full disk is TUNE_WRITE_FAILED', {
  skip: !existsSync('/dev/full') && 'no /dev/full',
}, () => {
  assert.throws(() => writeJson('/dev/full', {}), {
    code: 'TUNE_WRITE_FAILED',
    message: /\/dev\/full cannot be written: ENOSPC.*name another file/,
  });
  assert.deepEqual(readConfigFile('/dev/full'), {});
});

test('a new file that cannot be written leaves the old one as it was', (t) => {
  const file = join(folderOf(t), 'config.json');
  writeFileSync(file, '{"app":"a.js"}');
  const endless: { self?: unknown } = {};
  endless.self = endless;
  assert.throws(() => writeJson(file, endless));
  assert.throws(() => writeJson(join(file, 'below'), {}), { code: 'TUNE_WRITE_FAILED' });
  assert.equal(readFileSync(file, 'utf8'), '{"app":"a.js"}');
});

for (const text of ['{', '[]', '5']) {
  test(`a configuration that is ${text} is OPTION_INVALID`, (t) => {
    const file = join(folderOf(t), 'config.json');
    writeFileSync(file, text);
    assert.throws(() => readConfigFile(file), {
      code: 'OPTION_INVALID',
      message: /config\.json cannot be read as a configuration/,
    });
  });
}
