// The plagiarism checker as its user meets it: the program is run, and judged by its exit code, its text
// and its JSON. test/examples/plagiarism/ has the tests of its parts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Report } from './plagiarism/modules.js';

const program = 'examples/plagiarism/main.js';
const sample = 'examples/plagiarism/sample';

function start(args: readonly string[], script = program) {
  return spawnSync(process.execPath, [script, ...args], { encoding: 'utf8', timeout: 60_000 });
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-plagiarism-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function reportOf(t: TestContext, args: readonly string[]): Report {
  const path = join(makeFolder(t), 'report.json');
  const run = start([...args, '--json', path]);
  assert.equal(run.status, 0, run.stderr);
  return JSON.parse(readFileSync(path, 'utf8'));
}

test('sequential.js and parallel.js differ in one line', () => {
  const [one, other] = ['sequential', 'parallel'].map((name) =>
    readFileSync(`examples/plagiarism/${name}.js`, 'utf8').split('\n'),
  );
  assert.equal(one?.length, other?.length);
  assert.equal(one?.filter((line, at) => line !== other?.[at]).length, 1);
});

test('the guide shows the code of parallel.js as it is', () => {
  const guide = readFileSync('docs/guide/plagiarism.md', 'utf8');
  const shown = guide.match(/```js\n(.*?)```/s)?.[1] ?? '-';
  assert.ok(readFileSync('examples/plagiarism/parallel.js', 'utf8').includes(shown), shown);
});

test('without a folder it finds the copy in its sample, and lists the omissions', () => {
  const run = start([]);
  assert.equal(run.status, 0, run.stderr);
  assert.match(
    run.stdout,
    /5 of 6 files compared, 10 pairs, 1 with at least 30 % and 100 tokens in common/,
  );
  assert.match(
    run.stdout,
    /^ +1 +95 % +96 % +374 {2}anna\/Library\.java\n +ben\/Rental\.java\n +lines 40–57 = 12–32, /m,
  );
  assert.match(run.stdout, /Left out:\n {2}finn\/Homework\.java is not Java/);
  assert.match(run.stdout, /Compared in [\d.]+ s with manycore\.\n$/);
});

test('in workers and in one process the report is the same', (t) => {
  assert.deepEqual(reportOf(t, [sample]), reportOf(t, [sample, '--sequential']));
});

test('the JSON report has every pair with the lines and columns of its matches', (t) => {
  const args = [sample, '--sequential', '--threshold', '0.1', '--least-tokens', '20'];
  const { files, problems, pairs, ...rest } = reportOf(t, args);
  assert.deepEqual(rest, {
    ...{ folder: sample, threshold: 0.1, by: 'similarity', leastTokens: 20, leastMatchTokens: 20 },
    ...{ fileCount: 6, comparedCount: 5, pairCount: 10 },
  });
  assert.deepEqual(problems, [
    {
      path: 'finn/Homework.java',
      kind: 'not-java',
      reason: 'is not Java, as far as the grammar can tell',
    },
  ]);
  assert.deepEqual(files.at(-1), { path: 'emil/Words.java', tokens: 210 });
  const [pair, ...others] = pairs;
  assert.deepEqual([pair?.rank, pair?.a, pair?.b], [1, 'anna/Library.java', 'ben/Rental.java']);
  assert.ok(others.every(({ similarity }) => similarity < (pair?.similarity ?? 0)));
  assert.equal(
    pair?.matches.reduce((sum, { tokens }) => sum + tokens, 0),
    pair?.tokens,
  );
  assert.deepEqual(pair?.matches[0]?.a, {
    firstLine: 9,
    firstColumn: 1,
    lastLine: 15,
    lastColumn: 10,
  });
});

test('ranked by containment, a file inside a larger one is on top', (t) => {
  const folder = makeFolder(t);
  const [library, matrix] = ['anna/Library', 'dora/Matrix'].map((name) =>
    readFileSync(join(sample, `${name}.java`), 'utf8'),
  );
  writeFileSync(join(folder, 'A.java'), matrix ?? '');
  writeFileSync(join(folder, 'B.java'), `${library}\n${matrix}`);
  const [pair] = reportOf(t, [folder, '--sequential', '--by', 'containment']).pairs;
  assert.equal(pair?.containment, 1);
  assert.ok((pair?.similarity ?? 1) < 0.9);
});

test('files that cannot be compared are named with a reason, and the rest is compared', (t) => {
  const folder = makeFolder(t);
  const java = readFileSync(join(sample, 'dora/Matrix.java'), 'utf8');
  mkdirSync(join(folder, 'sub'));
  const files: Readonly<Record<string, string | Buffer>> = {
    'A.java': java,
    'sub/Utf16.java': Buffer.from(`\u{feff}${java}`, 'utf16le'),
    'Latin.java': Buffer.from(`// größer\n${java}`, 'latin1'),
    'Broken.java': java.replace('return product;\n    }', 'return product;\n'),
    'Binary.java': Buffer.from([0, 1, 2, 3]),
    'Empty.java': '',
    'Notes.java': 'Not a program. I promise to hand one in.',
    'Script.java': 'export const a = (b) => [...b].map((c) => ({ ...c, d: c?.e ?? `f` }));\n',
    'package-info.java': '/** Nothing but a comment. */\npackage a;\n',
  };
  for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, path), content);
  const report = reportOf(t, [folder]);
  assert.deepEqual(
    report.problems.map(({ path, kind }) => `${path} ${kind}`),
    [
      'Binary.java binary',
      'Empty.java empty',
      'Notes.java not-java',
      'Script.java not-java',
      'package-info.java no-code',
    ],
  );
  assert.deepEqual(
    report.files.map(({ path, note }) => `${path} ${note ?? ''}`),
    [
      'A.java ',
      'Broken.java ',
      'Latin.java is not valid UTF-8: read as Latin-1',
      'sub/Utf16.java is UTF-16 LE',
    ],
  );
  assert.equal(report.pairs.filter(({ similarity }) => similarity === 1).length, 3);
  assert.equal(report.pairs.length, 6);
});

test('planted pairs are looked up in the ranking; one that is missing is exit code 1', (t) => {
  const list = join(makeFolder(t), 'planted.json');
  const found = { original: 'ben/Rental.java', copy: 'anna/Library.java' };
  const lost = { original: 'dora/Matrix.java', copy: 'emil/Words.java' };
  const check = (planted: object[]) => {
    writeFileSync(list, JSON.stringify(planted));
    return start([sample, '--sequential', '--planted', list]);
  };
  const good = check([found]);
  assert.equal(good.status, 0, good.stderr);
  assert.match(good.stdout, /Planted: 1 of 1 pair found, the last on rank 1\n/);
  const bad = check([found, lost]);
  assert.equal(bad.status, 1);
  assert.match(
    bad.stdout,
    /1 of 2 pairs found.*\n {2}not found: emil\/Words\.java, of dora\/Matrix\.java/,
  );
});

const mistakes: readonly (readonly [what: string, args: readonly string[], message: RegExp])[] = [
  ['an unknown flag', ['--loud'], /Unknown option '--loud'/],
  ['a flag without its value', ['--json'], /--json/],
  ['two folders', ['a', 'b'], /one folder, not 2: "b"/],
  [
    'a threshold that is no number',
    ['--threshold', 'high'],
    /--threshold is "high": give a number from 0\.1 to 1/,
  ],
  ['a threshold out of range', ['--threshold', '0'], /--threshold is "0"/],
  ['a limit that is not whole', ['--limit', '1.5'], /--limit is "1\.5": give a whole number/],
  [
    'an unknown measure',
    ['--by', 'luck'],
    /--by does not know "luck": give one of similarity, containment/,
  ],
  ['a folder that is not there', ['/nowhere'], /\/nowhere cannot be read \(ENOENT\)/],
  ['a file in place of a folder', ['package.json'], /package\.json cannot be read \(ENOTDIR\)/],
  [
    'a folder without Java files',
    ['docs'],
    /docs has no \.java file: give a folder with at least two/,
  ],
  ['a folder with one Java file', [`${sample}/anna`], /anna has one \.java file/],
  [
    'planted pairs that are no list',
    ['--planted', 'package.json'],
    /package\.json is not a list of/,
  ],
  [
    'planted pairs that are not there',
    ['--planted', '/nowhere'],
    /\/nowhere cannot be read \(ENOENT\)/,
  ],
  [
    'a report that cannot be written',
    ['--json', 'package.json/a'],
    /package\.json\/a cannot be written/,
  ],
];

for (const [what, args, message] of mistakes) {
  test(`${what} is one sentence and exit code 2`, () => {
    const run = start(args);
    assert.equal(run.status, 2, run.stderr);
    assert.match(run.stderr, message);
    assert.match(run.stderr, /^plagiarism: .*\n$/);
    assert.equal(run.stdout, '');
  });
}

test('npm run example runs the main.js of an example, and lists them when the name is unknown', () => {
  const run = start(['plagiarism', sample, '--sequential'], 'scripts/example.mjs');
  assert.equal(run.status, 0, run.stderr);
  assert.match(run.stdout, /anna\/Library\.java/);
  for (const args of [[], ['chess'], ['first-steps'], ['./plagiarism']]) {
    const wrong = start(args, 'scripts/example.mjs');
    assert.equal(wrong.status, 2);
    assert.match(
      wrong.stderr,
      /^example: .*: give one of .*partitions, plagiarism, plugins, shared-data, smart-tv/,
    );
  }
});
