import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Histogram } from '../../src/pool/histogram.js';
import { random } from '../support/index.js';

/** The nearest-rank percentile of sorted values. */
function exact(sorted: readonly number[], fraction: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? 0;
}

test('percentiles are within 6 % of the exact ones, from microseconds to hours', (t) => {
  const { next } = random(t);
  for (const [leastMs, mostMs] of [
    [0.002, 0.01],
    [0.1, 5],
    [1, 60_000],
    [1000, 10_000_000],
  ] as const) {
    const histogram = new Histogram();
    const values = Array.from({ length: 2000 }, () => leastMs * (mostMs / leastMs) ** next());
    for (const value of values) histogram.record(value);
    const sorted = values.sort((a, b) => a - b);
    const summary = histogram.summary();
    for (const [found, fraction] of [
      [summary.p50Ms, 0.5],
      [summary.p95Ms, 0.95],
      [summary.p99Ms, 0.99],
    ] as const) {
      const wanted = exact(sorted, fraction);
      // Below 1.6 µs the unit of 100 ns is coarser than 6 %.
      const allowed = Math.max(wanted * 0.0626, 0.0001);
      assert.ok(Math.abs(found - wanted) <= allowed, `${fraction}: ${found} for ${wanted}`);
    }
    assert.equal(summary.count, 2000);
    assert.equal(summary.maxMs, sorted.at(-1));
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    assert.ok(Math.abs(summary.meanMs - mean) < mean * 1e-9);
    assert.equal(summary.minMs, sorted[0]);
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const deviation = Math.sqrt(squares / values.length);
    assert.ok(Math.abs(summary.deviationMs - deviation) < deviation * 1e-6);
  }
});

test('an empty histogram is all zero', () => {
  const { buckets, ...figures } = new Histogram().summary();
  assert.deepEqual(figures, {
    count: 0,
    sumMs: 0,
    meanMs: 0,
    deviationMs: 0,
    minMs: 0,
    p50Ms: 0,
    p95Ms: 0,
    p99Ms: 0,
    maxMs: 0,
  });
  assert.ok(buckets.every(([, count]) => count === 0));
});

test('equal durations have no deviation, however long they are', () => {
  const histogram = new Histogram();
  for (let count = 0; count < 3; count += 1) histogram.record(12_345.678_9);
  assert.ok(histogram.summary().deviationMs < 0.001);
});

test('reset() begins anew, and the total goes on', (t) => {
  const { next } = random(t);
  const [histogram, all] = [new Histogram(), new Histogram()];
  for (let round = 0; round < 3; round += 1) {
    const since = new Histogram();
    for (let count = 0; count < 100; count += 1) {
      const ms = next() * 10 ** (4 * next());
      for (const each of [histogram, all, since]) each.record(ms);
    }
    assert.deepEqual(histogram.summary(), since.summary());
    const [total, wanted] = [histogram.total(), all.summary()];
    assert.ok(Math.abs(total.sumMs - wanted.sumMs) < wanted.sumMs * 1e-9);
    assert.ok(Math.abs(total.deviationMs - wanted.deviationMs) < wanted.deviationMs * 1e-6);
    const { sumMs, meanMs, deviationMs } = wanted;
    assert.deepEqual({ ...total, sumMs, meanMs, deviationMs }, wanted);
    histogram.reset();
    assert.deepEqual(histogram.summary(), new Histogram().summary());
    assert.equal(histogram.total().count, wanted.count);
  }
});

test('a percentile is never above the largest value', () => {
  const histogram = new Histogram();
  histogram.record(0);
  histogram.record(3.3);
  const { p50Ms, p99Ms, maxMs } = histogram.summary();
  assert.ok(p50Ms <= 0.0001);
  assert.deepEqual([p99Ms, maxMs], [3.3, 3.3]);
});

test('durations beyond the last bucket and below zero are counted in the outermost ones', () => {
  const histogram = new Histogram();
  histogram.record(-1);
  histogram.record(1e12);
  const { count, maxMs } = histogram.summary();
  assert.deepEqual([count, maxMs], [2, 1e12]);
});

test('buckets count what took at most so long, each with those before it', () => {
  const histogram = new Histogram();
  for (const ms of [0.05, 0.3, 0.4, 7, 7, 20_000, 10_000_000]) histogram.record(ms);
  const { buckets, count } = histogram.summary();
  assert.equal(count, 7);
  assert.deepEqual(
    buckets.map(([, upTo]) => upTo),
    [1, 3, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5, 6],
  );
  const bounds = buckets.map(([atMostMs]) => atMostMs);
  assert.deepEqual(
    bounds,
    [...bounds].sort((a, b) => a - b),
  );
});
