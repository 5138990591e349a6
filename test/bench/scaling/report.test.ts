import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scalingReport } from '../../../bench/report/scaling/index.js';
import { scalingRun } from './given.js';

const laws = {
  shm: { sigma: 0.05, kappa: 0.001, single: 900 },
  socket: { sigma: 0.1, kappa: 0.002, single: 700 },
  'no-parent': { sigma: 0.001, kappa: 0, single: 1000 },
  loop: { sigma: 0, kappa: 0, single: 1000 },
};

const linesOf = (run: ReturnType<typeof scalingRun>) => scalingReport(run).lines;

function svgOf(run: ReturnType<typeof scalingRun>): string {
  const { files } = scalingReport(run);
  assert.deepEqual(Object.keys(files), ['words.svg']);
  return files['words.svg'] ?? '';
}

const count = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length;

test('the table has a row for each contender and number of workers, measured and fitted apart', () => {
  const lines = linesOf(scalingRun([1, 2, 3, 4], laws));
  const fitted = lines.findIndex((line) => line.startsWith('fitted to the speed-ups'));
  const measured = lines.slice(0, fitted);
  assert.equal(measured.filter((line) => line.startsWith('shm ')).length, 4);
  assert.equal(measured.filter((line) => line.startsWith('loop ')).length, 1);
  assert.match(lines.find((line) => /^shm +2 /.test(line)) ?? '', /1\.9 .*× +95\.1 %/);
  assert.match(lines.slice(fitted).join('\n'), /on 8 +on 16/);
  assert.match(lines.find((line) => line.startsWith('shm, USL')) ?? '', /0\.05 .*0\.001 /);
  assert.ok(lines.includes('! shm on 2, round 5: no answer'));
});

test('two cores: the report says that κ was set and that nothing could contradict the fit', () => {
  const run = scalingRun([1, 2], laws);
  assert.match(
    linesOf(run).join('\n'),
    /! fitted to one worker count above 1: κ cannot be separated/,
  );
  assert.match(linesOf(run).join('\n'), /shm, USL +\S+ +0 \(set\)/);
  assert.match(svgOf(run), /Fitted to one worker count above 1/);
});

test('three cores: the report says that the USL goes through its points whatever they are', () => {
  const lines = linesOf(scalingRun([1, 2, 3], laws)).join('\n');
  assert.match(lines, /! fitted to two worker counts above 1/);
  assert.doesNotMatch(lines, /shm, USL .*\(set\)/);
});

test('four cores: nothing has to be said about the fit, unless workers share physical cores', () => {
  assert.ok(!linesOf(scalingRun([1, 2, 3, 4], laws)).some((line) => line.startsWith('! fitted')));
  const shared = linesOf(scalingRun([1, 2, 3, 4], laws, 2)).join('\n');
  assert.match(shared, /! from 3 workers on, workers share physical cores/);
});

test('a speed-up that no law reaches is named', () => {
  const slower = { shm: { sigma: 1, kappa: 0.1, single: 900 } };
  assert.match(linesOf(scalingRun([1, 2], slower)).join('\n'), /! speed-ups below 1 or above n/);
  assert.doesNotMatch(linesOf(scalingRun([1, 2], laws)).join('\n'), /below 1/);
});

test('one core: there is a table and nothing is fitted', () => {
  const { lines, files } = scalingReport(scalingRun([1], laws));
  assert.match(lines.join('\n'), /nothing is fitted/);
  assert.doesNotMatch(files['words.svg'] ?? '', /NaN|Infinity|undefined/);
});

test('a plot has a mark for each measurement, and dashed lines only beyond them', () => {
  const svg = svgOf(scalingRun([1, 2, 3, 4], laws));
  const [channels, rows, workers] = [2, 2, 4];
  const legend = 2;
  const own = channels * rows * workers;
  assert.equal(count(svg, /<circle/g), 2 * own + legend);
  assert.equal(count(svg, /<path [^>]*stroke-dasharray/g), channels * rows * 2);
  assert.equal(count(svg, /<path [^>]*stroke-width(?![^>]*dasharray)/g), channels * rows * (2 + 1));
  assert.match(svg, />measured</);
  assert.match(svg, />fitted</);
  assert.match(svg, /dashed: extrapolated/);
});

test('a plot is well-formed: elements are closed in order, text is escaped, numbers are numbers', () => {
  for (const counts of [[1, 2], [1, 2, 4, 8, 12, 16], [1]]) {
    const svg = svgOf(scalingRun(counts, laws));
    const open: string[] = [];
    for (const [, end, name = ''] of svg.matchAll(/<(\/?)([a-z]+)[^<>]*>/g)) {
      if (end === '') open.push(name);
      else assert.equal(open.pop(), name);
    }
    assert.deepEqual(open, []);
    assert.match(svg, /Test &#60;CPU&#62;/);
    assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
  }
});

test('the fits are stored beside the samples', () => {
  const { stored } = scalingReport(scalingRun([1, 2], laws));
  assert.match(JSON.stringify(stored), /"contender":"shm".*"amdahl":\{"fit":\{"sigma":0\.05/);
});

test('a run of the plain loop alone has no plot', () => {
  const { loop } = laws;
  assert.deepEqual(scalingReport(scalingRun([1], { loop })).files, {});
});
