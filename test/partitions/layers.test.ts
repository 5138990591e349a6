// The parts of sandboxes for reports: each has a line, whatever is missing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partitionLayers } from '../../src/worker/index.js';
import { skip } from './support.js';

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
