// The smart TV as its user meets it: the program is run with small sizes and judged by its exit code,
// its table, its files, its pages and what it leaves behind. No figure is judged: this is no benchmark.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

const program = 'examples/smart-tv/main.js';
const deadlineMs = 60_000;

interface Run {
  readonly child: ChildProcess;
  /** Everything printed so far, both streams. */
  text(): string;
  /** Settles once `pattern` has been printed, rejects at the deadline. */
  printed(pattern: RegExp): Promise<RegExpMatchArray>;
  readonly exited: Promise<number | null>;
}

function start(t: TestContext, args: readonly string[]): Run {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const notice = (chunk: Buffer) => {
    text += String(chunk);
    child.emit('printed');
  };
  child.stdout.on('data', notice);
  child.stderr.on('data', notice);
  const exited = once(child, 'close').then(([code]) => (typeof code === 'number' ? code : null));
  t.after(() => child.kill('SIGKILL'));
  const printed = async (pattern: RegExp) => {
    const signal = AbortSignal.timeout(deadlineMs);
    for (;;) {
      const found = text.match(pattern);
      if (found !== null) return found;
      await once(child, 'printed', { signal }).catch(() => {
        throw new Error(`${pattern} was not printed; what was: ${text}`);
      });
    }
  };
  return { child, text: () => text, printed, exited };
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-smart-tv-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A PNG of 2 × 2 pixels, so that decoding costs next to nothing. */
function writeSmallPicture(folder: string): string {
  const path = join(folder, 'small.png');
  const base64 =
    'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAE0lEQVR4AWPcv38/AwMDEwMYAAAbBgJBt/lMPgAAAABJRU5ErkJggg==';
  writeFileSync(path, Buffer.from(base64, 'base64'));
  return path;
}

/** Returns the child processes of `pid`. Linux only, as its test. */
function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] === String(pid);
      } catch {
        return false; // it ended during the listing
      }
    })
    .map(Number);
}

async function haveEnded(pids: readonly number[]): Promise<void> {
  const signal = AbortSignal.timeout(deadlineMs);
  while (pids.some(isAlive)) {
    await setTimeout(20, undefined, { signal }).catch(() => {
      throw new Error(`still alive: ${pids.filter(isAlive).join(', ')}`);
    });
  }
}

function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

test('a run over every mode exits 0 with a table, results.json and a plot', {
  timeout: deadlineMs,
}, async (t) => {
  const folder = makeFolder(t);
  const run = start(t, ['--once', '--seconds', '1', '--out', folder, '--player', 'stand-in']);
  assert.equal(await run.exited, 0, run.text());

  const text = run.text();
  assert.match(text, /^mode +presses +p50 +p95 +p99 +max +p50 : idle +p95 : idle +decodes\/s/m);
  for (const mode of ['idle', 'serialized', 'threads', 'parallel']) {
    assert.match(text, new RegExp(`^${mode} +40 +[\\d.]+ ms`, 'm'));
  }
  assert.match(text, /serialized p95 : parallel p95 = \d+/);
  assert.match(text, /stand-in/);
  assert.doesNotMatch(text, /got no answer|decodes failed/);

  const study = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'));
  assert.deepEqual([study.load.width, study.load.height, study.load.loadPercent], [1920, 1080, 90]);
  assert.equal(study.results.length, 4);
  // A mode is measured only if it decodes.
  for (const result of study.results) {
    const { mode, responsesMs, p50Ms, p95Ms, p99Ms, maxMs } = result;
    assert.equal(responsesMs.length, 40, mode);
    const sorted = responsesMs.toSorted((a: number, b: number) => a - b);
    assert.equal(maxMs, sorted.at(-1), mode);
    assert.ok(p50Ms >= sorted[19] && p50Ms <= sorted[20], `${mode}: ${p50Ms} is not the median`);
    assert.ok(p50Ms <= p95Ms && p95Ms <= p99Ms && p99Ms <= maxMs, mode);
  }

  const svg = readFileSync(join(folder, 'responses.svg'), 'utf8');
  assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox/);
  assert.equal(svg.match(/<path /g)?.length, 4);
  assert.doesNotMatch(svg, /NaN|undefined|Infinity/);
});

test('the pages stay up after the study: buttons, modes and events work until SIGINT', {
  timeout: deadlineMs,
}, async (t) => {
  const folder = makeFolder(t);
  const picture = writeSmallPicture(folder);
  const run = start(t, [
    ...['--seconds', '0.5', '--modes', 'idle', '--port', '0', '--host', '127.0.0.1'],
    ...['--png', picture, '--load', '5', '--out', folder, '--player', 'stand-in'],
  ]);
  const base = (await run.printed(/remote control +(http:\S+)\//))[1] ?? '';
  const post = (path: string) => fetch(`${base}${path}`, { method: 'POST' });
  await run.printed(/The pages stay up/);

  for (const [path, what] of [
    ['/', 'data-button="play"'],
    ['/tv', 'id="chart"'],
    ['/uplot.js', 'uPlot'],
    ['/style.css', '--serialized'],
  ] as const) {
    const answer = await fetch(`${base}${path}`);
    assert.equal(answer.status, 200, path);
    assert.ok((await answer.text()).includes(what), `${path} has no ${what}`);
  }

  for (const mode of ['serialized', 'threads', 'parallel', 'idle']) {
    assert.deepEqual(await (await post(`/mode/${mode}`)).json(), { mode });
    assert.deepEqual(await (await post('/press/play')).json(), { pressed: 'play' });
  }
  assert.equal((await post('/press/eject')).status, 404);
  assert.equal((await post('/mode/toString')).status, 404);
  assert.equal((await post('/felt?ms=soon')).status, 400);
  assert.equal((await fetch(`${base}/../package.json`)).status, 404);

  const leave = new AbortController();
  const events = await fetch(`${base}/events`, { signal: leave.signal });
  const seen = await readUntil(events, /"pid":(\d+).*event: samples/s);
  leave.abort();
  const playerPid = Number(seen[1]);

  const pid = run.child.pid ?? 0;
  const children = childrenOf(pid);
  assert.ok(children.includes(playerPid), 'the player is a process of its own');
  run.child.kill('SIGINT');
  assert.equal(await run.exited, 130);
  await haveEnded(children);
});

async function readUntil(answer: Response, pattern: RegExp): Promise<RegExpMatchArray> {
  let text = '';
  const decoder = new TextDecoder();
  assert.ok(answer.body !== null);
  for await (const chunk of answer.body) {
    text += decoder.decode(chunk, { stream: true });
    const found = text.match(pattern);
    if (found !== null) return found;
  }
  throw new Error(`the events ended without ${pattern}: ${text}`);
}

test('SIGINT in the middle of a measurement ends everything', {
  timeout: deadlineMs,
}, async (t) => {
  const folder = makeFolder(t);
  const run = start(t, [
    ...['--once', '--seconds', '60', '--modes', 'threads', '--out', folder],
    ...['--png', writeSmallPicture(folder), '--load', '5', '--player', 'stand-in'],
  ]);
  await run.printed(/threads: measuring/);
  const children = childrenOf(run.child.pid ?? 0);
  assert.ok(children.length >= 2, 'the thumb and the player');
  run.child.kill('SIGINT');
  assert.equal(await run.exited, 130);
  await haveEnded(children);
});

const mistakes: readonly [string, readonly string[], RegExp][] = [
  ['an unknown flag', ['--loud'], /Unknown option '--loud'/],
  ['a word without a flag', ['fast'], /'fast'/],
  ['a flag without its value', ['--seconds'], /--seconds/],
  ['seconds that are no number', ['--seconds', 'ten'], /--seconds is "ten": give a number from/],
  ['a rate out of range', ['--rate', '0'], /--rate is "0"/],
  ['a port out of range', ['--port', '70000'], /--port is "70000"/],
  ['a mode that is unknown', ['--modes', 'idle,magic'], /"magic": give one of idle, serialized/],
  [
    'a picture that is not there',
    ['--png', '/nowhere.png'],
    /nowhere\.png cannot be read \(ENOENT\)/,
  ],
  ['a picture that is no PNG', ['--png', program], /is not a PNG/],
];

for (const [what, args, message] of mistakes) {
  test(`${what} is one sentence and exit code 2`, async (t) => {
    const run = start(t, ['--once', '--out', makeFolder(t), ...args]);
    assert.equal(await run.exited, 2);
    assert.match(run.text(), message);
    assert.equal(run.text().trim().split('\n').length, 1, run.text());
  });
}

test('a port that is taken is named, with exit code 2', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const address = other.address();
  assert.ok(typeof address === 'object' && address !== null);
  const folder = makeFolder(t);
  const run = start(t, [
    ...['--once', '--host', '127.0.0.1', '--port', String(address.port)],
    ...['--png', writeSmallPicture(folder), '--out', folder],
  ]);
  assert.equal(await run.exited, 2);
  assert.match(run.text(), new RegExp(`^smart-tv: port ${address.port} is in use`));
});
