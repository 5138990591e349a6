// The example of Fibonacci numbers on each kind of workers: its table, its picture, and the kinds it leaves out.

import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { skip } from '../partitions/support.js';

const folder = fileURLToPath(new URL('../../../examples/partitions/', import.meta.url));

interface Row {
  readonly kind: string;
  readonly says: string;
  readonly workers: number;
  readonly times: number;
}

const { drawChart }: { drawChart: (rows: readonly Row[], about: string) => string } = await import(
  pathToFileURL(`${folder}chart.js`).href
);
const { numbersUpTo }: { numbersUpTo: (largest: number, times: number) => number[] } = await import(
  pathToFileURL(`${folder}fibonacci.js`).href
);

function pictureFile(t: TestContext): string {
  const parent = mkdtempSync(join(tmpdir(), 'manycore-partitions-'));
  t.after(() => rmSync(parent, { recursive: true, force: true }));
  return join(parent, 'picture.svg');
}

function start(
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [`${folder}main.js`, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
    env,
  });
}

/** Throws where an element is not closed, or in the wrong order. */
function assertWellFormed(svg: string): void {
  const open: string[] = [];
  for (const [, end, name = '', own] of svg.matchAll(/<(\/?)(\w+)(?: [\w:-]+="[^"<]*")*(\/?)>/g)) {
    if (end === '/') assert.equal(name, open.pop());
    else if (own !== '/') open.push(name);
  }
  assert.deepEqual(open, []);
  assert.equal(svg.match(/</g)?.length, svg.match(/<\/?\w+(?: [\w:-]+="[^"<]*")*\/?>/g)?.length);
}

const barsOf = (svg: string): number[] =>
  [...svg.matchAll(/<rect .* height="([\d.]+)" fill="#(?!fff)/g)].map(([, height]) =>
    Number(height),
  );

test('the program prints a line for each kind and number of workers, and draws them', (t) => {
  const file = pictureFile(t);
  const { stdout, stderr, status } = start(['15', file]);
  assert.equal(status, 0, stderr);
  const rows = stdout.match(/^\S.* +\d+ +\d+ +\d+\.\d\d$/gm) ?? [];
  for (const says of ['threads', 'processes', skip === false ? 'sandboxes' : '']) {
    assert.ok(
      rows.some((row) => row.startsWith(says)),
      stdout,
    );
  }
  const svg = readFileSync(file, 'utf8');
  assertWellFormed(svg);
  const shown = new Set(rows.map((row) => row.split(/ {2,}/)[0]));
  assert.equal(barsOf(svg).length, rows.length + shown.size); // the signs of the legend
});

test('the program names the kinds that this machine does not have, and shows the others', (t) => {
  const file = pictureFile(t);
  const { stdout, stderr, status } = start(['10', file], { ...process.env, PATH: '' });
  assert.equal(status, 0, stderr);
  for (const says of ['sandboxes', 'guests of User-mode Linux', 'guests of gVisor']) {
    assert.match(stdout, new RegExp(`^no ${says}: \\S`, 'm'));
  }
  const svg = readFileSync(file, 'utf8');
  assert.match(svg, />processes</);
  assert.doesNotMatch(svg, />sandboxes</);
});

test('arguments that make no sense are one sentence, and draw nothing', (t) => {
  const file = pictureFile(t);
  for (const args of [
    ['many', file],
    ['0', file],
    ['46', file],
    ['10', file, 'more'],
    ['10', join(file, 'below')],
  ]) {
    const { stdout, stderr, status } = start(args);
    assert.equal(status, 2, stderr);
    assert.match(stderr, /^partitions: .*: give LARGEST, .*\n$/);
    assert.equal(stdout, '');
  }
  assert.ok(!existsSync(file));
});

test('numbers come as often as asked for, the long tasks first', () => {
  assert.deepEqual(numbersUpTo(3, 2), [3, 3, 2, 2, 1, 1]);
});

test('a bar is as high as it is fast, and a kind without a number has none', () => {
  const row = (kind: string, workers: number, times: number): Row => {
    return { kind, says: kind, workers, times };
  };
  const rows = [row('process', 1, 1), row('process', 2, 2), row('sandbox', 2, 1.5)];
  const svg = drawChart(rows, 'fib & <others>');
  assertWellFormed(svg);
  const [one = 0, two = 0, sandbox = 0, ...legend] = barsOf(svg);
  assert.ok(Math.abs(two - 2 * one) < 0.2, `${two} beside ${one}`);
  assert.ok(Math.abs(sandbox - 1.5 * one) < 0.2, `${sandbox} beside ${one}`);
  assert.deepEqual(legend, [12, 12]);
  assert.match(svg, /fib &#38; &#60;others&#62;/);
});
