import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Parameter } from '../../src/tune/configuration.js';
import { type SpaceOptions, spaceOf } from '../../src/tune/search/space.js';

const nothingSet: SpaceOptions['current'] = {
  loops: {},
  poolWorkers: undefined,
  blockingThreads: undefined,
  heapLimitMb: undefined,
  semiSpaceMb: undefined,
  gcThreads: undefined,
};
const ofNode: SpaceOptions = {
  kind: 'node',
  current: nothingSet,
  cores: 2,
  allowedCores: [0, 1],
  defaultHeapMb: 4144,
  memoryMb: 32_768,
  nodeMajor: 20,
  stats: { perSecond: 1, errorsPerSecond: 0, largestMiB: 100 },
  hasWorkers: false,
  only: undefined,
};

function valuesOf(parameter: Parameter, options: Partial<SpaceOptions>): unknown[] {
  const { candidates } = spaceOf({ ...ofNode, ...options });
  return candidates
    .filter((each) => each.parameter === parameter)
    .map(({ configuration }) => configuration[parameter]);
}

function whyNot(parameter: Parameter, options: Partial<SpaceOptions>): string | undefined {
  return spaceOf({ ...ofNode, ...options }).notTried.find((each) => each.parameter === parameter)
    ?.why;
}

test('each candidate changes one parameter, and costs more than the one before it', () => {
  const { candidates } = spaceOf({ ...ofNode, kind: 'serve' });
  for (const { parameter, configuration } of candidates)
    assert.deepEqual(Object.keys(configuration), [parameter]);
  const costs = candidates
    .filter(({ parameter }) => parameter === 'blockingThreads')
    .map(({ cost }) => cost);
  assert.deepEqual(costs, [0, 1, 2]);
});

test('the current values of a server are those that manycore serve gives each process', () => {
  const under = (processes: number): SpaceOptions['current'] => ({
    ...nothingSet,
    loops: { processes },
  });
  const values = (processes: number): unknown[] =>
    valuesOf('blockingThreads', { kind: 'serve', cores: 8, current: under(processes) });
  assert.deepEqual(values(1), [4, 16, 32]);
  assert.deepEqual(values(8), [8, 16, 32]);
  assert.deepEqual(valuesOf('blockingThreads', { cores: 8 }), [8, 16, 32]);
  assert.deepEqual(valuesOf('blockingThreads', { kind: 'serve' }), [2, 8, 16]);
  // Without a number of processes any of these may be in force.
  assert.deepEqual(valuesOf('blockingThreads', { kind: 'serve', cores: 8 }), [4, 8, 16, 32]);
});

test('the current number of blocking threads is not tried', () => {
  assert.deepEqual(valuesOf('blockingThreads', {}), [2, 8, 16]);
  const current = { ...nothingSet, blockingThreads: 1 };
  assert.deepEqual(valuesOf('blockingThreads', { current }), [2, 4, 8, 16]);
  assert.deepEqual(valuesOf('blockingThreads', { cores: 72 }), [16, 72, 144, 288]);
});

test('loops are tried under manycore serve only', () => {
  assert.deepEqual(valuesOf('loops', {}), []);
  assert.match(whyNot('loops', {}) ?? '', /--serve/);
  assert.deepEqual(valuesOf('loops', { kind: 'serve' }), [
    { processes: 1, loops: 1 },
    { processes: 1, loops: 2 },
    { processes: 2, loops: 1 },
  ]);
  const current = { ...nothingSet, loops: { processes: 1, loops: 2 } };
  assert.equal(valuesOf('loops', { kind: 'serve', current }).length, 2);
  assert.deepEqual(valuesOf('loops', { kind: 'serve', cores: 1 }), [{ processes: 1, loops: 1 }]);
  assert.equal(valuesOf('loops', { kind: 'serve', cores: 8 }).length, 4);
});

test('a heap limit is tried where the program is near it, and never a lower one', () => {
  assert.deepEqual(valuesOf('heapLimit', {}), []);
  assert.match(whyNot('heapLimit', {}) ?? '', /far from the 100 MiB/);
  const current = { ...nothingSet, heapLimitMb: 128 };
  assert.deepEqual(valuesOf('heapLimit', { current }), [256, 512, 4144]);
  assert.deepEqual(valuesOf('heapLimit', { defaultHeapMb: 150 }), [300, 600]);
  assert.deepEqual(valuesOf('heapLimit', { only: ['heapLimit'] }), [8288, 16576]);
  assert.deepEqual(valuesOf('heapLimit', { current, memoryMb: 700 }), [256, 512]);
  assert.deepEqual(valuesOf('heapLimit', { current, memoryMb: 300 }), []);
  assert.match(whyNot('heapLimit', { current, memoryMb: 300 }) ?? '', /more than the 300 MiB/);
  const unknown = { perSecond: 1, errorsPerSecond: 0 };
  assert.deepEqual(valuesOf('heapLimit', { stats: unknown }), [8288, 16576]);
});

test('workers are tried where there are some', () => {
  assert.deepEqual(valuesOf('poolWorkers', {}), []);
  assert.deepEqual(valuesOf('poolWorkers', { hasWorkers: true }), [1, 4]);
  assert.deepEqual(valuesOf('poolWorkers', { only: ['poolWorkers'] }), [1, 4]);
  assert.match(whyNot('poolWorkers', { hasWorkers: true, kind: 'serve' }) ?? '', /share/);
});

test('a program that node does not start gets no flags that NODE_OPTIONS refuses', () => {
  assert.deepEqual(valuesOf('gcThreads', {}), [1, 0]);
  assert.deepEqual(valuesOf('gcThreads', { kind: 'other' }), [1]);
});

test('semi-spaces are other ones than Node’s own', () => {
  assert.deepEqual(valuesOf('semiSpace', {}), [32, 64]);
  assert.deepEqual(valuesOf('semiSpace', { nodeMajor: 24 }), [16, 128]);
});

test('affinity needs the binary and more than one core', () => {
  assert.deepEqual(valuesOf('affinity', {}), [[0]]);
  assert.deepEqual(valuesOf('affinity', { allowedCores: [1, 3, 5, 7] }), [[1, 3]]);
  assert.match(whyNot('affinity', { allowedCores: [] }) ?? '', /native binary/);
  assert.match(whyNot('affinity', { allowedCores: [3] }) ?? '', /one core/);
});

test('with --only nothing else is tried or mentioned', () => {
  const { candidates, notTried } = spaceOf({ ...ofNode, only: ['semiSpace', 'loops'] });
  assert.deepEqual([...new Set(candidates.map(({ parameter }) => parameter))], ['semiSpace']);
  assert.deepEqual(
    notTried.map(({ parameter }) => parameter),
    ['loops'],
  );
});
