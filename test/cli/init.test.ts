// `manycore init`: files that start a program at boot. And the duty of process 1 in a container.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { bodyOf } from '../serve/client.js';
import { folder, program, skip } from '../serve/served.js';
import { freePort, waitFor } from '../support/index.js';
import { command, deadlineMs } from './serving.js';

function init(cwd: string, ...args: string[]) {
  const run = spawnSync(process.execPath, [command, 'init', ...args], { cwd, encoding: 'utf8' });
  return { status: run.status, stdout: run.stdout, stderr: run.stderr };
}

const noAnalyzer = spawnSync('systemd-analyze', ['--version']).error !== undefined;
const skipUnit = noAnalyzer && 'there is no systemd-analyze';

for (const [flags, args] of [
  [[], []],
  [['--user'], ['--', '-P', '2']],
  [
    ['--name', 'shop@2'],
    ['--', '--port', '80', '--host', 'a b"c\\d$e%f'],
  ],
] as const) {
  const title = [...flags, ...args].join(' ') || 'no flags';
  test(`systemd accepts the unit: ${title}`, { skip: skipUnit }, (t) => {
    const at = join(folder(t), "it's 100 % $HOME");
    mkdirSync(at);
    writeFileSync(join(at, 'app.js'), '');
    const { status, stdout } = init(at, 'systemd', 'app.js', '--write', ...flags, ...args);
    assert.equal(status, 0);
    const [written = '', name = ''] = /^(\S+)\.service is written/.exec(stdout) ?? [];
    assert.notEqual(written, '');
    const unit = join(at, `${name}.service`);
    const verified = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
    // It also complains about units of this machine.
    const own = verified.stderr.split('\n').filter((line) => line.includes(`${name}.service`));
    assert.deepEqual(own, []);
    const text = readFileSync(unit, 'utf8');
    assert.ok(text.includes(`"${at.replaceAll('%', '%%').replaceAll('$', '$$$$')}/app.js"`));
  });
}

test('a file is never overwritten', (t) => {
  const at = folder(t);
  writeFileSync(join(at, 'app.js'), '');
  writeFileSync(join(at, 'Dockerfile'), 'mine');
  const { status, stderr } = init(at, 'docker', 'app.js', '--write');
  assert.equal(status, 2);
  assert.match(stderr, /^manycore: there is a file .*Dockerfile: remove it first/);
  assert.equal(readFileSync(join(at, 'Dockerfile'), 'utf8'), 'mine');
});

test('a Dockerfile starts the command itself', (t) => {
  const at = folder(t);
  mkdirSync(join(at, 'src'));
  writeFileSync(join(at, 'src', 'app.js'), '');
  const { stdout } = init(at, 'docker', 'src/app.js', '--', '-P', '2');
  const [, words = ''] = /^CMD (.*)$/m.exec(stdout) ?? [];
  assert.deepEqual(JSON.parse(words), [
    ...['node_modules/.bin/manycore', 'serve'],
    ...['src/app.js', '-P', '2'],
  ]);
  const { status, stderr } = init(join(at, 'src'), 'docker', '/etc/passwd');
  assert.equal(status, 2);
  assert.match(stderr, /outside of this folder/);
});

for (const kind of ['systemd', 'docker']) {
  test(`init ${kind} of a program that is not there is one sentence`, (t) => {
    const { status, stderr, stdout } = init(folder(t), kind, 'none.js');
    assert.deepEqual([status, stdout], [2, '']);
    assert.match(stderr, /^manycore: there is no file .*none\.js: .*\(CLI_FILE_NOT_FOUND\)\n$/);
  });
}

const namespaces = ['--pid', '--fork', '--mount-proc', '--kill-child'];
const skipNamespaces =
  skip ||
  (spawnSync('unshare', [...namespaces, 'true']).status !== 0 &&
    'no namespace of processes can be made here');

test('as process 1 it reaps processes whose parents have ended', {
  skip: skipNamespaces,
}, async (t) => {
  // Each request leaves a process behind whose parent ends first. Answers with the number of zombies.
  const app = program(
    t,
    'app.mjs',
    `
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
const stateOf = (pid) => {
  try {
    return readFileSync('/proc/' + pid + '/stat', 'utf8').replace(/^.*\\) /s, '')[0];
  } catch {
    return '';
  }
};
export default (request, response) => {
  if (request.url === '/leave') execFileSync('/bin/sh', ['-c', 'sleep 0.05 >/dev/null 2>&1 &']);
  const zombies = readdirSync('/proc').filter((name) => /^\\d+$/.test(name) && stateOf(name) === 'Z');
  response.end(String(zombies.length));
};
`,
  );
  const port = await freePort();
  const flags = ['serve', app, '-P', '1', '-L', '1', '--port', String(port)];
  const child = spawn('unshare', [...namespaces, process.execPath, command, ...flags]);
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines.length > 0, deadlineMs);
  // One is reaped after a second or two.
  await waitFor(async () => Number(await bodyOf(port, '/leave')) > 0, deadlineMs);
  await waitFor(async () => (await bodyOf(port)) === '0', deadlineMs);
  assert.ok(existsSync(app));
});
