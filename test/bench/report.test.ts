import assert from 'node:assert/strict';
import { test } from 'node:test';
import { interleave } from '../../bench/report/plan.js';
import { median, spreadOf } from '../../bench/report/stats.js';
import {
  claimsTable,
  formatNumber,
  headlineTable,
  insertTable,
  linesTable,
  settingTable,
  verdictTable,
} from '../../bench/report/table.js';
import type { Bar, Figure, Measured } from '../../bench/report/types.js';
import { judge } from '../../bench/report/verdict.js';

const figures: Record<string, Figure> = {
  p50Us: { says: 'p50', unit: 'µs', better: 'lower' },
  perSecond: { says: 'calls', unit: '/s', better: 'higher' },
};
const us = { setting: 'free', contender: 'us' };
const slow = { setting: 'free', contender: 'slow' };
const fast = { setting: 'free', contender: 'fast' };

const took = (
  side: typeof us,
  p50Us: (number | null)[],
  perSecond: (number | null)[],
): Measured => ({
  ...side,
  samples: { p50Us, perSecond },
  failures: [],
});

const bar = (more: Partial<Bar>): Bar => ({
  says: 'a claim',
  figure: 'p50Us',
  of: us,
  against: [slow, fast],
  ...more,
});

test('contenders take turns, round by round', () => {
  const turns = interleave(['A', 'B', 'C'], 2).map(({ round, run }) => `${run}${round}`);
  assert.deepEqual(turns, ['A0', 'B0', 'C0', 'A1', 'B1', 'C1']);
});

test('the median of an even count is the mean of the middle two, of nothing NaN', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([10, 1, 3, 100]), 6.5);
  assert.ok(Number.isNaN(median([])));
});

test('failed rounds are left out of median and range', () => {
  assert.deepEqual(spreadOf([null, 4, 2, null, 8]), { median: 4, min: 2, max: 8 });
  assert.equal(spreadOf([null, null]), undefined);
});

test('the rival of a bar is the best one in the direction of the figure', () => {
  const measured = [
    took(us, [1, 1, 1], [500, 500, 500]),
    took(slow, [50, 50, 50], [10, 10, 10]),
    took(fast, [10, 10, 10], [100, 100, 100]),
  ];
  const latency = judge(bar({ atMost: 0.2 }), figures, measured);
  assert.equal(latency.rival?.contender, 'fast');
  assert.equal(latency.reached?.median, 0.1);
  assert.equal(latency.verdict, 'met');
  const rate = judge(bar({ figure: 'perSecond', atLeast: 8 }), figures, measured);
  assert.equal(rate.rival?.contender, 'fast');
  assert.equal(rate.reached?.median, 5);
  assert.equal(rate.verdict, 'refuted');
  const faster = judge(bar({ timesFaster: 10 }), figures, measured);
  assert.equal(faster.reached?.median, 10);
  assert.equal(faster.verdict, 'met');
});

test('a bar is missed when a round reached it and the median did not, refuted when none did', () => {
  const rival = took(fast, [10, 10, 10], []);
  const sometimes = judge(bar({ atMost: 0.2 }), figures, [took(us, [1, 3, 4], []), rival]);
  assert.equal(sometimes.verdict, 'missed');
  assert.deepEqual(sometimes.reached, { median: 0.3, min: 0.1, max: 0.4 });
  const never = judge(bar({ atMost: 0.2 }), figures, [took(us, [3, 3, 4], []), rival]);
  assert.equal(never.verdict, 'refuted');
});

test('what shared its rounds is judged by the median of their ratios', () => {
  const measured = [took(us, [2, 9, 30], []), took(fast, [1, 10, 20], [])];
  const apart = judge(bar({ atMost: 1 }), figures, measured);
  assert.deepEqual(apart.reached, { median: 0.9, min: 0.9, max: 2 });
  const paired = judge(bar({ atMost: 1, isPaired: true }), figures, measured);
  assert.deepEqual(paired.reached, { median: 1.5, min: 0.9, max: 2 });
  assert.equal(paired.verdict, 'missed');
});

test('a bar without a number on one side is unmeasured, whatever the other side did', () => {
  const failed = took(us, [null, null], []);
  const verdict = judge(bar({ atMost: 0.2 }), figures, [failed, took(fast, [1, 1], [])]);
  assert.equal(verdict.verdict, 'unmeasured');
  assert.equal(judge(bar({ atMost: 2 }), figures, [took(us, [1], [])]).verdict, 'unmeasured');
});

test('a bar without rivals compares the figure itself', () => {
  const absolute: Bar = { says: 'idle', figure: 'p50Us', of: us, atMost: 0 };
  assert.equal(judge(absolute, figures, [took(us, [0, 0], [])]).verdict, 'met');
  assert.equal(judge(absolute, figures, [took(us, [2, 2], [])]).verdict, 'refuted');
});

test('numbers keep three digits that count', () => {
  const written = [0, 0.01234, 0.5, 1.234, 12.34, 1234567, Number.NaN].map(formatNumber);
  assert.deepEqual(written, ['0', '0.0123', '0.5', '1.23', '12.3', '1,234,567', '-']);
});

test('a contender that failed stays in the table, with its message', () => {
  const lines = settingTable('free', figures, [
    took(fast, [10, 12, 11], [100, 100, 100]),
    {
      ...took(us, [null], [null]),
      failures: [1, 3].map((round) => ({ round, says: 'no answer, killed' })),
    },
  ]);
  assert.match(lines[1] ?? '', /^fast +11 \(10–12\) +100$/);
  assert.match(lines[2] ?? '', /^us +- +-$/);
  assert.equal(lines[3], '! us, rounds 1 and 3: no answer, killed');
});

const stored = {
  name: 'round-trip',
  figures,
  judged: [judge(bar({ atMost: 0.2 }), figures, [took(us, [30], []), took(fast, [10], [])])],
};

test('the table of all bars shows a refuted one with its figures and links', () => {
  const table = claimsTable([stored], 'Made here.');
  assert.match(table, /\| a claim \| ≤ 0\.2 × \| 3 × \| 30 µs \/ 10 µs \(fast\) \| refuted \|/);
  assert.match(
    table,
    /\(\.\.\/bench\/cases\/round-trip\.js\), \[result\]\(\.\.\/bench\/results\/round-trip\.json\)/,
  );
  assert.match(table, /\nMade here\.$/);
  assert.match(verdictTable(stored.judged, figures)[0] ?? '', /^REFUTED +a claim +≤ 0\.2 × +3 × /);
});

test('the table of named bars has those alone, and refuses a name that is not stored', () => {
  const table = headlineTable([stored], [['round-trip', 'a claim']]);
  const row = '| a claim | 3 × | 30 µs / 10 µs (fast) | [round-trip](bench/cases/round-trip.js) |';
  assert.equal(table.split('\n').at(-1), row);
  for (const name of [
    ['round-trip', 'another claim'],
    ['map', 'a claim'],
  ] as const) {
    assert.throws(() => headlineTable([stored], [name]), /no stored bar/);
  }
});

test('the table of lines has the bars that another line has, too', () => {
  const [first] = stored.judged;
  assert.ok(first);
  const other = { ...first, bar: { ...first.bar, says: 'another claim' } };
  const aim = { ...first, bar: { ...first.bar, says: 'an aim', isAim: true } };
  const table = linesTable([
    ['Node 24', '', [{ ...stored, judged: [first, other] }]],
    ['Node 20', 'node-20/', []],
    ['Node 26', 'node-26/', [{ ...stored, judged: [{ ...first, verdict: 'met' }, aim] }]],
  ]);
  const [before, after] = ['../bench/results/', 'round-trip.json)'];
  assert.deepEqual(table.split('\n').slice(1), [
    '|---|---|---|---|---|---|',
    `| a claim | ≤ 0.2 × | 3 ×, [refuted](${before}${after} |  | 3 ×, [met](${before}node-26/${after} | [round-trip](../bench/cases/round-trip.js) |`,
  ]);
});

test('the table of lines names the bar of a line that has another', () => {
  const [first] = stored.judged;
  assert.ok(first);
  const looser = { ...first, bar: { ...first.bar, atMost: 4 }, verdict: 'met' as const };
  const table = linesTable([
    ['Node 24', '', [{ ...stored, judged: [first] }]],
    ['Node 20', 'node-20/', [{ ...stored, judged: [looser] }]],
  ]);
  assert.match(
    table,
    /\| ≤ 0\.2 × \| 3 ×, \[refuted\]\(\S+\) \| 3 ×, \[met\]\(\S+\) \(bar ≤ 4 ×\) \|/,
  );
});

test('a table replaces what is between its markers and nothing else', () => {
  const page = 'top\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nbottom\n';
  const once = insertTable(page, 'bench', 'new');
  assert.equal(once, 'top\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nbottom\n');
  assert.equal(insertTable(once ?? '', 'bench', 'new'), once);
  assert.equal(insertTable(page, 'numbers', 'new'), undefined);
});
