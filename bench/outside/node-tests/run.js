// Node's own tests of `http`, `https`, `http2`, `net` and `tls` whose text calls `listen(`, each as the program of
// a loop (`manycore serve -P 1 -L 1`), against the same file under plain Node. One that fails there is left out.
// Such a test has no end under a supervisor, which would serve on: it gets SIGTERM after a multiple of its plain
// time, and the exit code of the loop's process is its result. A failure is tried again with more time.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { inTurns, runChild } from '../lib/children.js';
import { fetchFolder } from '../lib/fetch.js';
import { reasons } from './reasons.js';

/** A copy of the folder `test` of Node 24.12.0: Node's own repository is a hundred times as large. */
const source = ['denoland/node_test', '170b25ab9080b9d58d21b582fbf28ee5676b8387', 'test'];
const parts = [
  'test/parallel',
  'test/common',
  ...['a.js', 'elipses.txt', 'empty.txt', 'emptyframe.http2', 'google_ssl_hello.bin', 'keys']
    .concat('person.jpg', 'person-large.jpg', 'printA.js', 'tls-connect.js')
    .map((name) => `test/fixtures/${name}`),
];
const command = fileURLToPath(new URL('../../../dist/bundle/main.js', import.meta.url));
const recorder = fileURLToPath(new URL('record.cjs', import.meta.url));
const atATime = 2;
const plainTimeoutMs = 60_000;
/** Time for a test before SIGTERM, at the first try and later. */
const patience = [(plainMs) => 500 + 2 * plainMs, (plainMs) => 6000 + 5 * plainMs];
const endTimeoutMs = 30_000;
/** Then connections that a test has left open are ended, which would not keep a process of its own alive. */
const drainTimeoutMs = 1500;

/** Resolves with a row for each test: `{ name, outcome, why, detail }`. */
export async function measureNodeTests({ node, only }) {
  const root = fetchFolder(...source, parts);
  const folder = join(root, 'parallel');
  const names = readdirSync(folder)
    .filter((name) => /^test-(http|https|http2|net|tls)-.*\.m?js$/.test(name))
    .filter((name) => only === undefined || only.split(',').some((part) => name.includes(part)))
    .filter((name) => /\blisten\(/.test(readFileSync(join(folder, name), 'utf8')));
  return await inTurns(names, atATime, async (name, index) => {
    const path = join(folder, name);
    const [, flags = ''] = /^\/\/ Flags: (.*)$/m.exec(readFileSync(path, 'utf8')) ?? [];
    const setting = {
      cwd: root,
      // Ports and folders of its own.
      env: { NODE_COMMON_PORT: String(12_346 + 40 * (index % 200)), TEST_THREAD_ID: String(index) },
    };
    const args = flags.split(' ').filter((flag) => flag !== '');
    const begun = performance.now();
    const plain = await runChild(node, [...args, path], { ...setting, timeoutMs: plainTimeoutMs });
    if (plain.code !== 0) return { name, outcome: 'fails by itself', detail: plain.stderr };
    const plainMs = performance.now() - begun;
    let result;
    for (const wait of patience) {
      result = await runServed(node, [...args, command], path, setting, wait(plainMs));
      if (result.code === '0') return { name, outcome: 'same' };
    }
    const { outcome = 'fails', why } = reasons.find(({ test }) => test === name) ?? {};
    return { name, outcome, why, detail: `${result.code}: ${result.output}` };
  });
}

/** Resolves with the last exit code of the first process that the program ran in. */
async function runServed(node, command, path, { cwd, env }, patienceMs) {
  const work = mkdtempSync(join(tmpdir(), 'node-tests-'));
  const record = join(work, 'record');
  writeFileSync(record, '');
  const config = join(work, 'config.json');
  writeFileSync(config, JSON.stringify({ processes: 1, loops: 1, drainTimeoutMs }));
  const child = spawn(node, [...command, 'serve', path, '--config', config], {
    cwd,
    env: { ...process.env, ...env, RECORD: record, NODE_OPTIONS: `--require=${recorder}` },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  let hasExited = false;
  const exited = new Promise((resolve) => {
    child.once('exit', () => {
      hasExited = true;
      resolve();
    });
  });
  /** Lines of the first process: its begin, and its ends. */
  const lines = () => {
    const all = readFileSync(record, 'utf8').split('\n').slice(0, -1);
    const [pid] = (all[0] ?? '').split(' ');
    return all.filter((line) => line.startsWith(`${pid} `));
  };
  const until = async (isTrue, ms) => {
    const end = performance.now() + ms;
    while (!isTrue() && !hasExited && performance.now() < end) await sleep(20);
  };
  await until(() => lines().length > 0, endTimeoutMs);
  await until(() => lines().length > 1, patienceMs);
  if (lines().length <= 1) {
    child.kill('SIGTERM');
    await until(() => lines().length > 1, endTimeoutMs);
  }
  await sleep(20); // A second end of the process may follow the first.
  const [, code = 'killed'] = (lines().slice(1).at(-1) ?? '').split(' ');
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // All of it has ended already.
  }
  await exited;
  rmSync(work, { recursive: true, force: true });
  return { code, output };
}
