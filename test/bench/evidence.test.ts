import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawChart } from '../../bench/report/evidence/chart.js';
import { evidenceCases, evidenceOf } from '../../bench/report/evidence/index.js';

const { paperNames } = await import(
  new URL('../../../bench/lib/case-names.js', import.meta.url).href
);

test('what `paper` measures is what the page shows', () => {
  assert.deepEqual(paperNames, evidenceCases);
});

test('an experiment without a stored result says so, and has no picture', () => {
  const { page, pictures } = evidenceOf([]);
  assert.equal(page.match(/Not measured yet/g)?.length, page.match(/^## /gm)?.length);
  assert.deepEqual(pictures, {});
});

const machine = {
  cpu: 'a CPU',
  cores: 2,
  kernel: 'Linux 6',
  node: 'v24.0.0',
  commit: 'abc',
  date: '2026-01-02T03:04:05Z',
};

test('figures of the page are medians and ranges of the stored rounds, all of a section or none', () => {
  const linesOf = (contender: string, lines: (number | null)[]) => ({
    setting: 'compare',
    contender,
    samples: { lines },
    failures: [],
  });
  const measured = [
    linesOf('one process', [5]),
    linesOf('pmap', [7, 9, null, 8]),
    linesOf('worker pool', [12]),
    linesOf('master and slaves', [40]),
  ];
  const part = evidenceOf([{ name: 'lines', rounds: 4, machine, measured: measured.slice(1) }]);
  assert.doesNotMatch(part.page, /8 \(7–9\)|- for the plain program/);
  assert.deepEqual(part.pictures, {});
  const { page, pictures } = evidenceOf([{ name: 'lines', rounds: 4, machine, measured }]);
  assert.match(page, /8 \(7–9\) with `pmap`/);
  assert.match(page, /4 rounds on a CPU, 2 cores, Linux 6, Node v24.0.0, commit abc, 2026-01-02/);
  assert.deepEqual(Object.keys(pictures), ['lines.svg']);
});

test('a rival that is not there does not hide our own figures', () => {
  const measuredOf = (contender: string) => ({
    setting: 'kept-alive',
    contender,
    samples: { perSecond: [100], cpuUs: [7] },
    failures: [],
  });
  const pageOf = (...contenders: string[]): string => {
    const measured = contenders.map(measuredOf);
    return evidenceOf([{ name: 'hello-units', rounds: 1, machine, measured }]).page;
  };
  const units = [1, 2, 4, 8].map((count) => `unit-${count}`);
  const alone = pageOf(...units);
  assert.match(alone, /instances on two loops: 100, 100, 100, 100/);
  assert.doesNotMatch(alone, /Vert\.x itself/);
  const beside = pageOf(...units, ...units.map((name) => name.replace('unit', 'vertx')));
  assert.match(beside, /Vert\.x itself: 100, 100, 100, 100/);
});

test('kinds of partitions that the machine does not have are not in the picture', () => {
  const pageOf = (kinds: readonly string[]) => {
    const measured = [1, 2].flatMap((workers) =>
      kinds.map((contender) => ({
        setting: `fibonacci-${workers}`,
        contender,
        samples: { totalMs: [900 / workers] },
        failures: [],
      })),
    );
    return evidenceOf([{ name: 'partitions', rounds: 1, machine, measured }]);
  };
  const own = pageOf(['thread', 'process', 'sandbox']);
  assert.match(
    own.page,
    /with 2 workers as with one: 2 with threads, 2 with processes, 2 with sandboxes\./,
  );
  assert.match(own.page, /Guests with a kernel of their own are not measured/);
  assert.doesNotMatch(own.pictures['partitions.svg'] ?? '', /guests/);
  const beside = pageOf(['thread', 'process', 'sandbox', 'uml']);
  assert.match(beside.page, /2 with guests of User-mode Linux\. Code/);
  assert.match(beside.pictures['partitions.svg'] ?? '', /guests of User-mode Linux/);
  assert.deepEqual(pageOf(['thread', 'process']).pictures, {});
});

const chart = {
  title: 'Bars & bars',
  unit: 'ms',
  series: ['a', 'b'],
  groups: [{ label: 'one', bars: [{ median: 50, min: 40, max: 60 }, undefined] }],
  notes: [],
};

function heights(svg: string): number[] {
  return [...svg.matchAll(/height="([\d.]+)" fill="#(?!fff)/g)].map(([, height]) => Number(height));
}

test('a bar is as high as its median, and one that was not measured is not drawn', () => {
  const svg = drawChart({ ...chart, scale: 'linear' });
  const [bar, ...keys] = heights(svg);
  assert.equal(bar, (240 * 50) / 60);
  assert.deepEqual(keys, [12, 12]); // the signs of the legend
  assert.match(svg, /Bars &#38; bars/);
});

test('parts stand on each other and are as high as their sum', () => {
  const part = (median: number) => ({ median, min: median, max: median });
  const groups = [{ label: 'one', bars: [[part(10), part(20), part(30)]] }];
  const svg = drawChart({ ...chart, groups, scale: 'linear' });
  assert.deepEqual(heights(svg).slice(0, 3), [40, 80, 120]);
});

test('a logarithmic scale has its lowest bar above the ground', () => {
  const low = { median: 1, min: 1, max: 1 };
  const high = { median: 1000, min: 1000, max: 1000 };
  const groups = [{ label: 'one', bars: [low, high] }];
  const [first = 0, second = 0] = heights(drawChart({ ...chart, groups, scale: 'log' }));
  assert.ok(first > 0 && second > first && second <= 240);
});
