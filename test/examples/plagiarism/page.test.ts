// The report as a page: nothing of a file becomes markup, and a browser, where there is one, shows the
// two sources with their matches.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const attack = '</script><img src=x onerror="document.title=1">';
const method =
  'int f(int[] a) { int s = 0; for (int b : a) { if (b > 3) { s += b * 2; } } return s; }';

/** The page of two alike files with markup in their names and contents; its path. */
function makePage(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-plagiarism-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const sources = join(folder, 'a<b>&"c');
  mkdirSync(sources);
  writeFileSync(join(sources, '<i>A.java'), `// ${attack} $& $1\nclass A { ${method} }\n`);
  writeFileSync(join(sources, 'B.java'), `class B {\n\n  ${method}\n  String s = "${attack}"; }\n`);
  writeFileSync(join(sources, '<u>no.java'), attack);
  const args = ['examples/plagiarism/main.js', sources, '--sequential', '--least-tokens', '40'];
  const run = spawnSync(process.execPath, [...args, '--html', folder], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.equal(run.status, 0, run.stderr);
  return join(folder, 'index.html');
}

test('text from files is escaped: the page has its own elements alone', (t) => {
  const page = readFileSync(makePage(t), 'utf8');
  const data = page.match(/<script type="application\/json" id="data">(.*?)<\/script>/)?.[1] ?? '';
  const { pairs, texts } = JSON.parse(data);
  assert.equal(pairs.length, 1);
  assert.equal(texts['<i>A.java'], `// ${attack} $& $1\nclass A { ${method} }\n`);
  const own = page.replace(data, '').replace(/<style>.*?<\/style>/s, '');
  assert.doesNotMatch(own, /<img|<i>A|<u>|<b>&|onerror="/);
  assert.match(own, /&#60;i&#62;A\.java/);
  assert.match(own, /&#60;u&#62;no\.java is not Java/);
  assert.equal(page.match(/<\/script>/g)?.length, 2);
  assert.doesNotMatch(page, /<!-- \w+ -->|https?:/);
});

const browser = ['chromium', 'chromium-browser', 'google-chrome'].find(
  (name) => spawnSync(name, ['--version'], { timeout: 20_000 }).status === 0,
);

test('a browser shows both sources, with a match in the same colour on both sides', {
  skip: browser === undefined && 'no Chromium is installed',
}, (t) => {
  const page = makePage(t);
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
  const run = spawnSync(
    browser ?? '',
    [
      ...[...flags, ...quiet, `--user-data-dir=${join(page, '../browser')}`, '--dump-dom'],
      `${pathToFileURL(page)}#pair-1`,
    ],
    { encoding: 'utf8', timeout: 60_000 },
  );
  const shown = run.stdout.slice(
    run.stdout.indexOf('<main id="view">'),
    run.stdout.indexOf('<noscript'),
  );
  assert.match(run.stdout, /<main id="list" hidden/);
  assert.equal(shown.match(/<section>/g)?.length, 2, run.stderr);
  const marks = shown.match(/<mark data-match="0" data-first="1" style="--hue: \d+;"/g);
  assert.equal(marks?.length, 2, shown);
  assert.equal(new Set(marks).size, 1);
  assert.match(shown, /&lt;\/script&gt;&lt;img/);
  assert.doesNotMatch(run.stdout, /<img|<title>1/);
});
