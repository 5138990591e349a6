// `manycore tune` as users start it, with the shortest runs. Improvements are large, so that nothing here
// depends on the speed of the machine.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Ended, runCommand } from '../faults/child.js';
import { childrenOf, waitFor, withDeadline } from '../support/index.js';
import { folderWith, script, server } from '../tune/running.js';
import { noPseudoTerminal, PseudoTerminal, shellWord } from './pseudo-terminal.js';

const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

/** Slow until it has eight threads; with two it does not even start. */
const wantsThreads = server(
  "process.env.UV_THREADPOOL_SIZE === '8' ? 1 : 40",
  "if (process.env.UV_THREADPOOL_SIZE === '2') throw new Error('two are not enough');",
);
/** Slow as soon as anything is changed. */
const wellSet = server('process.env.UV_THREADPOOL_SIZE ? 60 : 1');

interface Tuned extends Ended {
  readonly folder: string;
  readonly at: (name: string) => string;
}

async function tuneIn(
  t: TestContext,
  app: string,
  flags: readonly string[] = [],
  files: Readonly<Record<string, string>> = {},
): Promise<Tuned> {
  const folder = folderWith(t, { 'app.mjs': app, 'load.mjs': script, ...files });
  const at = (name: string): string => join(folder, name);
  const written = ['--config', at('config.json'), '--report', at('report.json')];
  const given = ['--load', at('load.mjs'), '--seconds', '0.1', '--only', 'blockingThreads'];
  const args = [
    main,
    'tune',
    ...given,
    ...written,
    ...flags,
    '--',
    process.execPath,
    at('app.mjs'),
  ];
  const ended = await runCommand(t, [process.execPath, ...args], { UV_THREADPOOL_SIZE: '' });
  return { ...ended, folder, at };
}

function json(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
}

test('an improvement is found and written with its reason, and a crashing candidate is reported', async (t) => {
  const before = '{"app":"app.mjs","env":{"LOG":"x"},"reasons":{"app":"ours"}}';
  const tuned = await tuneIn(t, wantsThreads, [], { 'config.json': before });
  const { status, stdout, stderr, at } = tuned;
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^Set UV_THREADPOOL_SIZE=8: \d+\.\d+ times the requests per second\.$/m);
  assert.match(stdout, /^UV_THREADPOOL_SIZE=2\n {2}out: .*exit code 1[^]*two are not[^]*enough/m);
  const wide = stdout.split('\n').filter((line) => line.length > 80);
  assert.deepEqual(
    wide.filter((line) => !line.includes(tuned.folder)),
    [],
  );
  const { app, env, reasons } = json(at('config.json'));
  assert.deepEqual([app, env], ['app.mjs', { LOG: 'x', UV_THREADPOOL_SIZE: '8' }]);
  const why = new Map(Object.entries(Object(reasons)));
  assert.equal(why.get('app'), 'ours');
  assert.match(
    String(why.get('env.UV_THREADPOOL_SIZE')),
    /times the requests per second \(.*pairs/,
  );
  const again = [
    'tune',
    '--apply',
    '--config',
    at('config.json'),
    '--',
    process.execPath,
    at('app.mjs'),
  ];
  assert.ok(stdout.endsWith(`\nwith them it runs by: manycore ${again.join(' ')}\n`), stdout);
  const report = json(at('report.json'));
  assert.deepEqual([report['isComplete'], report['advice']], [true, { blockingThreads: 8 }]);
});

test('a program that is well set is left as it is, and no configuration is written', async (t) => {
  const { status, stdout, stderr, at } = await tuneIn(t, wellSet, ['--json']);
  assert.equal(status, 0, stderr);
  const { advice, verdict, configurations } = JSON.parse(stdout);
  assert.deepEqual(advice, {});
  assert.match(
    verdict,
    /^Leave it as it is: of \d configurations none was better by more than 3 %/,
  );
  assert.equal(configurations[0].text, 'as it is');
  assert.ok(configurations.every((each: { runs: number }) => each.runs >= 2));
  assert.deepEqual([existsSync(at('config.json')), existsSync(at('report.json'))], [false, true]);
});

test('--no-write writes nothing, and --apply runs the program with what was found', async (t) => {
  const start = `console.log('threads', process.env.UV_THREADPOOL_SIZE, process.env.PORT);
    if (process.env.PORT === undefined) process.exit(5);`;
  const app = start + server("process.env.UV_THREADPOOL_SIZE === '8' ? 1 : 40");
  const { status, stdout, at } = await tuneIn(t, app, ['--no-write', '--apply']);
  assert.equal(status, 5, stdout);
  assert.match(stdout, /threads 8 undefined$/m);
  assert.deepEqual([existsSync(at('config.json')), existsSync(at('report.json'))], [false, false]);
});

test('--apply without a load takes the values of the configuration file', async (t) => {
  const folder = folderWith(t, {
    'app.mjs': `import { getHeapStatistics } from 'node:v8';
      const limit = getHeapStatistics().heap_size_limit / 2 ** 20;
      console.log(process.env.UV_THREADPOOL_SIZE, limit < 200, process.argv[2]);
      process.exit(6);`,
    'config.json': '{"env":{"UV_THREADPOOL_SIZE":"9"},"nodeFlags":["--max-old-space-size=100"]}',
  });
  const program = [process.execPath, join(folder, 'app.mjs'), '--flag'];
  const flags = ['tune', '--apply', '--config', join(folder, 'config.json'), '--', ...program];
  const { status, stdout } = await runCommand(t, [process.execPath, main, ...flags]);
  assert.deepEqual([status, stdout], [6, '9 true --flag\n']);
});

for (const { name, content, message } of [
  { name: 'is missing', message: /config\.json cannot be read as a configuration: ENOENT/ },
  { name: 'is no JSON', content: '{', message: /config\.json cannot be read as a configuration: / },
  { name: 'has flags as a text', content: '{"nodeFlags":"--x"}', message: /nodeFlags is "--x"/ },
  { name: 'has a number as env', content: '{"env":3}', message: /env is 3: it must be an object/ },
  { name: 'has an unknown key', content: '{"envv":{}}', message: /there is no "envv"/ },
  { name: 'is of another program', content: '{"app":"other.js"}', message: /is for .*other\.js/ },
]) {
  test(`--apply with a configuration that ${name} is one sentence`, async (t) => {
    const folder = folderWith(t, {
      'app.mjs': "console.log('runs')",
      ...(content !== undefined && { 'config.json': content }),
    });
    const flags = ['tune', '--apply', '--config', join(folder, 'config.json'), '--'];
    const words = [process.execPath, main, ...flags, process.execPath, join(folder, 'app.mjs')];
    const { status, stdout, stderr } = await runCommand(t, words);
    assert.deepEqual([status, stdout], [2, '']);
    assert.match(stderr, message);
    assert.match(stderr, /^manycore: .* \(OPTION_INVALID\)\n$/);
  });
}

test('a flag unknown to Node is not dropped', async (t) => {
  const folder = folderWith(t, {
    'app.mjs': "console.log('runs')",
    'config.json': '{"nodeFlags":["--no-such-flag"]}',
  });
  const flags = ['tune', '--apply', '--config', join(folder, 'config.json'), '--'];
  const words = [process.execPath, main, ...flags, process.execPath, join(folder, 'app.mjs')];
  const { status, stderr } = await runCommand(t, words);
  assert.deepEqual([status, /bad option: --no-such-flag/.test(stderr)], [9, true], stderr);
});

test('Ctrl-C at a terminal reaches the program that --apply runs once', {
  skip: noPseudoTerminal,
}, async (t) => {
  const folder = folderWith(t, {
    'config.json': '{}',
    // The second would come at once, if there were one: a timer of a second waits long enough for it.
    'app.mjs': `let count = 0;
      process.on('SIGINT', () => {
        count += 1;
        setTimeout(() => { console.log('heard ' + count); process.exit(3); }, 1000);
      });
      setInterval(() => {}, 1000);
      console.log('here');`,
  });
  const flags = ['--apply', '--config', join(folder, 'config.json')];
  const words = [process.execPath, main, 'tune', ...flags, '--'];
  // A remaining shell would end by the same Ctrl-C, and print that.
  const program = [...words, process.execPath, join(folder, 'app.mjs')];
  const line = `exec ${program.map(shellWord).join(' ')}`;
  const terminal = new PseudoTerminal(t, line, { columns: 80, rows: 24 });
  await terminal.sees(/^here/m);
  terminal.press('\x03');
  assert.equal(await withDeadline(terminal.ended, 20_000, 'the program ends'), 3);
  assert.match(terminal.output, /heard 1\r\n/);
});

test('a task is tuned without a load', async (t) => {
  const folder = folderWith(t, {
    'task.mjs': `import { setTimeout as sleep } from 'node:timers/promises';
      export default () => sleep(process.env.UV_THREADPOOL_SIZE === '8' ? 1 : 30);`,
  });
  const flags = ['--task', join(folder, 'task.mjs'), '--only', 'blockingThreads', '--no-write'];
  const args = [main, 'tune', ...flags, '--seconds', '0.1'];
  const { stdout, stderr } = await runCommand(t, [process.execPath, ...args]);
  assert.match(stdout, /^Set UV_THREADPOOL_SIZE=8: .* times the calls per second\.$/m, stderr);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} ends the search: the result so far is printed, and nothing stays`, async (t) => {
    const folder = folderWith(t, { 'app.mjs': wellSet, 'load.mjs': script });
    const at = (name: string): string => join(folder, name);
    const written = ['--config', at('config.json'), '--report', at('report.json')];
    const args = ['--load', at('load.mjs'), '--seconds', '0.2', ...written, '--'];
    const child = spawn(
      process.execPath,
      [main, 'tune', ...args, process.execPath, at('app.mjs')],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    t.after(() => child.kill('SIGKILL'));
    let [out, errors] = ['', ''];
    child.stdout.on('data', (text: Buffer) => {
      out += text.toString();
    });
    child.stderr.on('data', (text: Buffer) => {
      errors += text.toString();
    });
    const closed = new Promise<number | null>((resolve) => child.on('close', resolve));
    const seen = new Set<number>();
    await waitFor(() => {
      for (const { pid, commandLine } of childrenOf(child.pid ?? 0)) {
        // Before `exec` a child has our command line.
        if (commandLine.includes('app.mjs') && !commandLine.includes(main)) seen.add(pid);
      }
      return seen.size >= 4; // the first run is over, and the search goes on
    });
    child.kill(signal);
    assert.equal(await withDeadline(closed, 20_000, 'the end of tune'), 130);
    assert.match(out, /^configuration +runs +req\/s/m);
    assert.match(out, /^No advice: the search was not over\.$/m);
    assert.match(errors, /ended before its time; nothing was written/);
    assert.ok(!existsSync(at('config.json')) && !existsSync(at('report.json')));
    for (const pid of seen) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  });
}

test('no time for a single run is one sentence, and nothing is written', async (t) => {
  const { status, stdout, stderr, at } = await tuneIn(t, wellSet, ['--minutes', '0.001']);
  assert.deepEqual([status, stdout], [2, '']);
  assert.match(
    stderr,
    /^manycore: nothing was measured: .* raise --minutes.* \(OPTION_INVALID\)\n$/,
  );
  assert.deepEqual([existsSync(at('config.json')), existsSync(at('report.json'))], [false, false]);
});

test('a report that cannot be written is one sentence, and is printed before', {
  skip: !existsSync('/dev/full') && 'there is no /dev/full',
}, async (t) => {
  const { status, stdout, stderr } = await tuneIn(t, wellSet, ['--report', '/dev/full']);
  assert.equal(status, 2);
  assert.match(stdout, /^Leave it as it is/m);
  assert.match(stderr, /^manycore: \/dev\/full cannot be written: ENOSPC.*\(TUNE_WRITE_FAILED\)$/m);
});

test('a report that cannot be written keeps neither the configuration nor the program back', {
  skip: !existsSync('/dev/full') && 'there is no /dev/full',
}, async (t) => {
  const start = 'if (process.env.PORT === undefined) process.exit(5);';
  const app = start + server("process.env.UV_THREADPOOL_SIZE === '8' ? 1 : 40");
  const flags = ['--report', '/dev/full', '--apply'];
  const { status, stderr, at } = await tuneIn(t, app, flags);
  assert.equal(status, 5, stderr);
  assert.match(stderr, /\(TUNE_WRITE_FAILED\)$/m);
  assert.deepEqual(json(at('config.json'))['env'], { UV_THREADPOOL_SIZE: '8' });
});

for (const { what, config, program, message } of [
  {
    what: 'no program',
    config: '{}',
    program: [],
    message: /^manycore: there is no program to run: give it behind -- \(OPTION_INVALID\)\n$/,
  },
  {
    what: 'cores that are not here',
    config: '{"affinity":[4095]}',
    program: [process.execPath, '-e', '0'],
    message:
      /^manycore: affinity names core 4095, and this process may use cores? .*\(OPTION_INVALID\)\n$/,
  },
]) {
  test(`--apply with ${what} is one sentence`, {
    skip: process.platform !== 'linux' && 'processes are kept to cores on Linux',
  }, async (t) => {
    const folder = folderWith(t, { 'config.json': config });
    const flags = ['tune', '--apply', '--config', join(folder, 'config.json'), '--', ...program];
    const { status, stderr } = await runCommand(t, [process.execPath, main, ...flags]);
    assert.equal(status, 2);
    assert.match(stderr, message);
  });
}

test('a failure of the unchanged program is one sentence, before any search', async (t) => {
  const { status, stdout, stderr } = await tuneIn(t, "throw new Error('no database');");
  assert.deepEqual([status, stdout], [2, '']);
  assert.match(stderr, /^manycore: .*"Error: no database".*\(TUNE_PROGRAM_FAILED\)\n$/);
});

test('a program that fails later as it is ends the search, and the result so far is printed', async (t) => {
  const folder = folderWith(t, { runs: '' });
  const first = `import { appendFileSync, readFileSync } from 'node:fs';
    if (process.env.UV_THREADPOOL_SIZE === '') appendFileSync(${JSON.stringify(join(folder, 'runs'))}, 'x');
    if (readFileSync(${JSON.stringify(join(folder, 'runs'))}).length > 2) throw new Error('worn out');`;
  const { status, stdout, stderr, at } = await tuneIn(t, server('1', first));
  assert.equal(status, 2, stdout);
  assert.match(stdout, /^No advice: the search was not over\.$/m);
  assert.match(stderr, /worn out.*\(TUNE_PROGRAM_FAILED\)/);
  assert.ok(!existsSync(at('report.json')));
});

const node = [process.execPath, 'app.js'];
for (const [what, args, message] of [
  ['no program', ['--load', 'true'], /no program to tune: give it behind --/],
  ['no load', ['--', ...node], /there is no load: give --load/],
  ['a script that is not there', ['--load', 'no.mjs', '--', ...node], /no file .*no\.mjs/],
  ['a task that is not there', ['--task', 'no.mjs'], /no file .*no\.mjs/],
  ['a task and a program', ['--task', 'no.mjs', '--', ...node], /give --task alone/],
  ['an unknown parameter', ['--load', 'x', '--only', 'speed', '--', ...node], /"speed".*loops,/],
  ['an unknown goal', ['--goal', 'fun', '--', ...node], /Allowed choices are throughput/],
  ['no number', ['--minutes', 'few', '--', ...node], /must be a number above 0/],
  ['no address', ['--load', 'x', '--url', '3000', '--', ...node], /url is "3000"/],
  ['a program that cannot be served', ['--load', 'x', '--serve', '--', 'npm'], /"node FILE"/],
  ['a task to apply', ['--task', 'x.js', '--apply'], /leave --apply out/],
  [
    'a folder that is not there',
    ['--report', '/nowhere/x', '--', ...node],
    /\(TUNE_WRITE_FAILED\)/,
  ],
] as const) {
  test(`tune: ${what} is exit code 2 and one sentence`, async (t) => {
    const { status, stdout, stderr } = await runCommand(t, [
      process.execPath,
      main,
      'tune',
      ...args,
    ]);
    assert.deepEqual([status, stdout], [2, ''], stderr);
    assert.match(stderr, message);
    assert.match(stderr, /^manycore: .*\([A-Z_]+\)$/m);
  });
}

test('a configuration that is no JSON is an error before anything runs', async (t) => {
  const folder = folderWith(t, {});
  const config = join(folder, 'config.json');
  writeFileSync(config, '{');
  const args = ['tune', '--load', 'true', '--config', config, '--', ...node];
  const { status, stderr } = await runCommand(t, [process.execPath, main, ...args]);
  assert.equal(status, 2);
  assert.match(stderr, /config\.json cannot be read as a configuration.*\(OPTION_INVALID\)/);
  assert.equal(readFileSync(config, 'utf8'), '{');
});
