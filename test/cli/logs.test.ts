// Logs of `manycore serve`: labels, files, rotation, `manycore logs`.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LogFile } from '../../src/cli/commands/serve/log-file.js';
import { type Ended, runCommand } from '../faults/child.js';
import { begin, bodyOf } from '../serve/client.js';
import { folder, program, skip } from '../serve/served.js';
import { isRunning, killOne, waitFor, withDeadline } from '../support/index.js';
import { command, deadlineMs, exported, type Running, startWith } from './serving.js';

/** Prints a line to each stream for each request, and answers with the number of its loop. */
const text = `
import { threadId } from 'node:worker_threads';
console.log('loaded');
export default (request, response) => {
  console.log('out ' + request.url);
  console.error('err ' + request.url);
  if (request.url === '/slow') {
    response.write('began');
    setTimeout(() => {
      console.log('later');
      response.end(' ended');
    }, 300);
  } else response.end('answer');
};
`;

function ownServers(t: TestContext) {
  const env = { XDG_RUNTIME_DIR: folder(t) };
  const app = program(t, 'printer.mjs', text);
  return {
    app,
    env,
    start: (...flags: string[]): Promise<Running> =>
      startWith(t, [app, '--port', '0', ...flags], { env: { ...process.env, ...env } }),
    run: (...args: string[]): Promise<Ended> =>
      runCommand(t, [process.execPath, command, ...args], env),
  };
}

function linesIn(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
}

const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

for (const [flags, label] of [
  [['-P', '2', '-L', '1'], String.raw`printer [01]\.0`],
  [['-P', '1', '-L', '2'], String.raw`printer 0\.[01]`],
] as const) {
  test(`a log has each line with its loop: ${flags.join(' ')}`, { skip }, async (t) => {
    const { start } = ownServers(t);
    const log = join(folder(t), 'server.log');
    const { port, lines } = await start(...flags, '--log', log);
    await bodyOf(port, '/a');
    await waitFor(() => linesIn(log).length === 4, deadlineMs);
    const found = linesIn(log);
    for (const line of found) assert.match(line, new RegExp(`^${time} ${label} (out|err) `));
    assert.equal(found.filter((line) => line.endsWith(' out loaded')).length, 2);
    assert.equal(
      new Set(found.filter((line) => line.endsWith('loaded')).map((line) => line.split(' ')[2]))
        .size,
      2,
    );
    assert.ok(found.some((line) => line.endsWith(' out out /a')));
    assert.ok(found.some((line) => line.endsWith(' err err /a')));
    assert.ok(lines.every((line) => !line.includes('loaded')));
  });
}

test('uncaught errors of loops in threads are records of the log', { skip }, async (t) => {
  const { start, run, app } = ownServers(t);
  writeFileSync(
    app,
    `if (process.env.FAIL === '1') throw new Error('it does not load');
    export default (request, response) => {
      if (request.url === '/crash') setTimeout(() => { throw new Error('boom'); });
      response.end('answer');
    };`,
  );
  const log = join(folder(t), 'server.log');
  const fails = join(folder(t), 'env');
  writeFileSync(fails, 'FAIL=0');
  const flags = ['-P', '1', '-L', '2', '--env-file', fails];
  const { port, errors, child } = await start(...flags, '--log', log, '--log-format', 'json');
  await bodyOf(port, '/crash');
  const found = (): { text: string; loop: number; stream: string }[] =>
    linesIn(log).map((line) => JSON.parse(line));
  const stackOf = () => found().filter(({ text }) => /^Error: boom|printer\.mjs:3:/.test(text));
  const stack = await waitFor(() => (stackOf().length === 2 ? stackOf() : undefined), deadlineMs);
  for (const { loop, stream } of stack) {
    assert.ok([0, 1].includes(loop));
    assert.equal(stream, 'stderr');
  }
  assert.match((await run('logs')).stdout, / printer 0\.[01] err Error: boom\n/);
  await waitFor(() => errors.some((line) => / is lost \(boom\): /.test(line)), deadlineMs);
  writeFileSync(fails, 'FAIL=1');
  child.kill('SIGHUP');
  const isLoaded = ({ text }: { text: string }) => text === 'Error: it does not load';
  await waitFor(() => found().some(isLoaded), deadlineMs);
  await waitFor(() => errors.some((line) => line.includes('did not reload')), deadlineMs);
  assert.ok(!errors.some((line) => line.startsWith(' ')), errors.join('\n')); // no stacks there
});

test('the stack of an app without a log is printed, whatever others have', { skip }, async (t) => {
  const place = folder(t);
  const [quiet, app] = [program(t, 'quiet.mjs', exported), join(place, 'app.mjs')];
  writeFileSync(app, exported);
  const size = { port: 0, host: '127.0.0.1', processes: 1, loops: 1 };
  const logged = { ...size, app: quiet, name: 'logged', log: { file: join(place, 'logged.log') } };
  const config = join(place, 'config.json');
  writeFileSync(config, JSON.stringify({ apps: [logged, { ...size, app, name: 'bare' }] }));
  const { child, errors, lines } = await startWith(t, ['--config', config]);
  await waitFor(() => lines.filter((line) => /^listening/.test(line)).length === 2, deadlineMs);
  writeFileSync(app, `throw new Error('it does not load');`);
  killOne(child.pid, 'SIGHUP');
  await waitFor(() => errors.some((line) => line.includes('did not reload')), deadlineMs);
  assert.ok(errors.includes('Error: it does not load'), errors.join('\n'));
});

test('without a file labelled lines are printed, as JSON', { skip }, async (t) => {
  const { start } = ownServers(t);
  const { port, lines, errors } = await start('-P', '1', '-L', '1', '--log-format', 'json');
  await bodyOf(port, '/a');
  await waitFor(() => errors.length === 1 && lines.length === 3, deadlineMs);
  const { time: at, ...rest } = JSON.parse(errors[0] ?? '');
  assert.match(at, new RegExp(`^${time}$`));
  assert.deepEqual(rest, {
    name: 'printer',
    process: 0,
    loop: 0,
    stream: 'stderr',
    text: 'err /a',
  });
});

test('manycore logs prints the last lines, and follows', { skip }, async (t) => {
  const { start, run, env } = ownServers(t);
  const log = join(folder(t), 'server.log');
  const { port, child } = await start('-P', '1', '-L', '2', '--log', log);
  for (let at = 0; at < 5; at += 1) await bodyOf(port, `/${at}`);
  await waitFor(() => linesIn(log).length === 12, deadlineMs);
  const { stdout } = await run('logs', 'printer', '-n', '3');
  assert.deepEqual(stdout.split('\n').slice(0, -1), linesIn(log).slice(-3));
  const last = JSON.parse((await run('logs', '--json', '-n', '1')).stdout);
  assert.equal(last.name, 'printer');
  const flags = [command, 'logs', '-f', '-n', '0'];
  const follower = spawn(process.execPath, flags, { env: { ...process.env, ...env } });
  const ended = once(follower, 'close');
  let shown = '';
  follower.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  await waitFor(async () => {
    await bodyOf(port, '/f');
    return shown !== '';
  }, deadlineMs);
  child.kill('SIGTERM');
  assert.deepEqual(await withDeadline(ended, deadlineMs, 'the end of logs'), [0, null]);
  assert.match(shown, new RegExp(`^(${time} printer 0\\.[01] (out|err) .*\n)+$`));
});

test('a line at the limit of length arrives whole, with its loop', { skip }, async (t) => {
  const { start, run, app } = ownServers(t);
  writeFileSync(
    app,
    `export default (request, response) => {
      console.log('"'.repeat(65_536));
      response.end('answer');
    };`,
  );
  const log = join(folder(t), 'server.log');
  const { port } = await start('-P', '1', '-L', '2', '--log', log);
  await bodyOf(port);
  await waitFor(() => linesIn(log).length === 1, deadlineMs);
  const { stdout } = await run('logs', '--json');
  const { loop, text } = JSON.parse(stdout);
  assert.ok(loop === 0 || loop === 1);
  assert.equal(text, '"'.repeat(65_536));
});

test('logs of a server whose output is not read are refused', { skip }, async (t) => {
  const { start, run } = ownServers(t);
  await start('-P', '1', '-L', '1');
  const { status, stderr } = await run('logs');
  assert.equal(status, 2);
  assert.match(stderr, /^manycore: the server has no logs: .*--log.* \(SERVE_CONTROL_FAILED\)\n$/);
});

test('USR1 opens a log again that was moved', { skip }, async (t) => {
  const { start } = ownServers(t);
  const log = join(folder(t), 'server.log');
  const { port, child } = await start('-P', '1', '-L', '1', '--log', log);
  await waitFor(() => linesIn(log).length === 1, deadlineMs);
  renameSync(log, `${log}.old`);
  child.kill('SIGUSR1');
  await waitFor(() => existsSync(log), deadlineMs);
  await bodyOf(port, '/after');
  await waitFor(() => linesIn(log).length === 2, deadlineMs);
  assert.equal(linesIn(`${log}.old`).length, 1);
});

test('a log that cannot be opened is refused before anything starts', { skip }, async (t) => {
  const { app, run } = ownServers(t);
  for (const [flags, message] of [
    [['--log', '/dev/null/x'], /^manycore: log\.file cannot be written: .*; name one that can/],
    [['--log', folder(t)], /^manycore: log\.file cannot be written: EISDIR/],
    [['--log-max-mb', '1'], /^manycore: log\.file is undefined: .*maxMb or keep/],
    [['--log', '/tmp/x', '--log-max-mb', '0'], /^manycore: log\.maxMb is 0/],
    [['--log', '/tmp/x', '--log-keep', '0'], /^manycore: log\.keep is 0/],
    [['--log-format', 'xml'], /log-format.*xml.*text, json/],
  ] as const) {
    const { status, stderr, stdout } = await run('serve', app, '--port', '0', ...flags);
    assert.equal(status, 2);
    assert.match(stderr, message);
    assert.equal(stdout, '');
  }
});

test('a program that prints goes on when its supervisor was killed', { skip }, async (t) => {
  const { start } = ownServers(t);
  const { port, child, pids } = await start('-P', '1', '-L', '1', '--log', join(folder(t), 'log'));
  const { body } = await begin(port, '/slow');
  const exit = once(child, 'exit');
  killOne(child.pid, 'SIGKILL');
  await exit;
  assert.equal(await body, 'began ended');
  await waitFor(() => !pids.some((pid) => isRunning(pid)), deadlineMs);
});

function openLog(t: TestContext, options: { maxBytes?: number; keep?: number } = {}) {
  const at = folder(t);
  const path = join(at, 'log');
  const problems: string[] = [];
  const onProblem = (message: string): void => void problems.push(message);
  const open = (): LogFile => {
    const log = new LogFile(path, { maxBytes: Infinity, keep: 2, onProblem, ...options });
    t.after(() => log.close());
    return log;
  };
  return { at, path, problems, open };
}

test('a file is rotated before it is too large, and old files go', (t) => {
  const { at, path, open, problems } = openLog(t, { maxBytes: 10 });
  const log = open();
  for (const line of [
    'aaaa\n',
    'bbbb\n',
    'cccc\n',
    'dddd\n',
    'eeee\n',
    'a line above the limit\n',
    'f\n',
  ]) {
    log.write(line);
  }
  assert.deepEqual(readdirSync(at).sort(), ['log', 'log.1', 'log.2']);
  assert.equal(readFileSync(path, 'utf8'), 'f\n');
  assert.equal(readFileSync(`${path}.1`, 'utf8'), 'a line above the limit\n');
  assert.equal(readFileSync(`${path}.2`, 'utf8'), 'eeee\n');
  assert.deepEqual(problems, []);
});

test('two processes that append to a file rotate it once', (t) => {
  const { path, open } = openLog(t, { maxBytes: 20 });
  const [one, other] = [open(), open()];
  other.write(`${'a'.repeat(14)}\n`);
  one.write(`${'b'.repeat(9)}\n`);
  one.write(`${'c'.repeat(10)}\n`); // rotates
  other.write(`${'d'.repeat(5)}\n`); // too long for the old file alone
  assert.equal(readFileSync(path, 'utf8'), 'cccccccccc\nddddd\n');
  assert.ok(!existsSync(`${path}.2`));
});

test('a file that goes on is rotated at its whole size', (t) => {
  const { path, open } = openLog(t, { maxBytes: 10 });
  writeFileSync(path, 'from before\n');
  open().write('new\n');
  assert.equal(readFileSync(`${path}.1`, 'utf8'), 'from before\n');
});

test('a removed file is made again', async (t) => {
  const { path, open } = openLog(t);
  const log = open();
  log.write('lost\n');
  rmSync(path);
  await waitFor(() => {
    log.write('kept\n');
    return existsSync(path);
  }, deadlineMs);
  assert.match(readFileSync(path, 'utf8'), /^(kept\n)+$/);
});

test('a full disk is announced once, and when it has room again', {
  skip: !existsSync('/dev/full'),
}, async (t) => {
  const { at, path, open, problems } = openLog(t);
  symlinkSync('/dev/full', path);
  const log = open();
  log.write('one\n');
  log.write('two\nthree\n');
  assert.equal(problems.length, 1);
  assert.match(problems[0] ?? '', /cannot be written: ENOSPC.*; lines are lost$/);
  rmSync(path);
  symlinkSync(join(at, 'elsewhere'), path);
  log.write('four\n');
  assert.deepEqual(problems.slice(1), [`the log ${path} is written again; 3 lines were lost`]);
  assert.equal(readFileSync(path, 'utf8'), 'four\n');
});
