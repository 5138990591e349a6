// The parts of sandboxes for reports: each has a line, whatever is missing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  fillPartition,
  partitionLayers,
  sandboxAround,
  type VmOptions,
} from '../../src/worker/index.js';
import { refusalOf } from '../../src/worker/partition/ends.js';
import { skip } from './support.js';

function around(options: VmOptions) {
  const vm = fillPartition(options);
  assert.ok(vm.kind === 'vm');
  return sandboxAround(vm);
}

const all = ['manycore-enter', 'bubblewrap', 'namespaces', 'Landlock', 'seccomp', 'control groups'];

test('each part of a sandbox that is there has a line without a problem', { skip }, () => {
  const layers = partitionLayers();
  assert.deepEqual(
    layers.map(({ what }) => what),
    all,
  );
  assert.deepEqual(
    layers.flatMap(({ problem }) => problem ?? []),
    [],
  );
});

test('a part that is missing hides no other', { skip }, (t) => {
  const path = process.env['PATH'];
  process.env['PATH'] = '';
  t.after(() => {
    process.env['PATH'] = path;
  });
  const layers = partitionLayers();
  assert.deepEqual(
    layers.map(({ what }) => what),
    all.filter((what) => what !== 'namespaces'),
  );
  const problems = layers.flatMap(({ what, problem }) => (problem === undefined ? [] : [what]));
  assert.deepEqual(problems, ['bubblewrap']);
  assert.match(layers[1]?.problem ?? '', /install the package bubblewrap/);
});

test('a refusal for what the system may have again is tried again, any other is not', () => {
  const codeOf = (line: string): unknown => Object(refusalOf(125, `manycore-enter: ${line}`)).code;
  assert.equal(codeOf('fork: Resource temporarily unavailable (os error 11)'), 'EAGAIN');
  assert.equal(codeOf('clone: Cannot allocate memory'), 'EAGAIN');
  assert.equal(codeOf('Landlock: not supported'), 'PARTITION_UNAVAILABLE');
  assert.equal(refusalOf(1, 'another line'), undefined);
});

test('a guest of User-mode Linux keeps Landlock, whatever is allowed', () => {
  const allow = ['no-landlock', 'no-cgroup'] as const;
  const allowed = (engine: 'uml' | 'gvisor'): readonly string[] =>
    around({ kind: 'vm', engine, allow }).allow;
  assert.deepEqual(allowed('uml'), ['no-cgroup']);
  assert.deepEqual(allowed('gvisor'), ['no-landlock', 'no-cgroup']);
});
