import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { mergedConfig } from '../../src/tune/config-file.js';
import { programOf } from '../../src/tune/program/launch.js';
import { type Start, type StartConfig, startIn, startOf } from '../../src/tune/program/start.js';
import { folderWith } from './running.js';

const nothing = { file: 'config.json', apps: [], env: {}, nodeFlags: [], affinity: [] };

function started(config: Partial<StartConfig>, command: readonly string[], serve = false): Start {
  return startIn(
    { ...nothing, ...config },
    programOf(command, { serve, main: '/bin/manycore.js' }),
  );
}

test('a written configuration is read again as it was', () => {
  const advice = {
    loops: { processes: 2, loops: 1 },
    blockingThreads: 8,
    poolWorkers: 3,
    heapLimit: 512,
    semiSpace: 32,
    gcThreads: 0,
    affinity: [0, 1],
  };
  const config = mergedConfig({}, advice, {});
  assert.deepEqual(started(config, ['manycore', 'serve', 'app.js']), startOf(advice));
});

test('untuned values count, too', () => {
  const config = { env: { LOG: 'x' }, nodeFlags: ['--no-warnings'], processes: { min: 2, max: 4 } };
  const { flags, variables, counts } = started(config, ['manycore', 'serve', 'app.js']);
  assert.deepEqual([flags, variables], [['--no-warnings'], { LOG: 'x' }]);
  assert.deepEqual(counts, ['--processes=2..4']);
});

test('a configuration of another program is refused, with the way out', (t) => {
  const folder = folderWith(t, { 'own.js': '', 'other.js': '' });
  const [own, other] = [join(folder, 'own.js'), join(folder, 'other.js')];
  for (const command of [
    ['node', own],
    ['node', '-e', '0'],
    ['manycore', 'serve', own],
    ['npx', 'tsx', own],
  ]) {
    assert.throws(() => started({ apps: [other] }, command), {
      code: 'OPTION_INVALID',
      message:
        /^config\.json is for .*other\.js, and not for this program: name its own with --config/,
    });
  }
  const named = join(folder, 'own');
  for (const command of [
    ['node', own],
    ['node', named],
    ['node', folder],
    ['manycore', 'serve', own],
    ['manycore', 'serve', '--port', '80'],
    ['npm', 'start'],
  ]) {
    assert.doesNotThrow(() => started({ apps: [other, own] }, command), command.join(' '));
  }
});

test('processes and loops are refused for a program that is not served, but not for npm', () => {
  const config = { loops: 2 };
  assert.throws(() => started(config, ['node', 'app.js']), {
    code: 'OPTION_INVALID',
    message: /sets processes or loops, which only manycore serve has: give --serve/,
  });
  assert.deepEqual(started(config, ['node', 'app.js'], true).counts, ['--loops=2']);
  assert.doesNotThrow(() => started(config, ['npm', 'start']));
});
