// `manycore init pm2`: ecosystem files of PM2, the configuration that comes out, and what is left out.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fromPm2, type Pm2Options } from '../../src/cli/commands/init/pm2.js';
import { servePlan, startConfig } from '../../src/cli/commands/serve/serve-config.js';
import { folder } from '../serve/served.js';
import { command } from './serving.js';

const one = { app: 'app.js', processes: 1, loops: 1 };

interface Case {
  readonly title: string;
  /** Keys beside `script`, or the whole file. */
  readonly app?: object;
  readonly file?: unknown;
  readonly options?: Omit<Pm2Options, 'folder'>;
  /** Keys beside those of an app without keys, or the whole configuration. */
  readonly config?: object;
  readonly whole?: object;
  /** App and key of each line. */
  readonly left?: readonly string[];
}

const cases: readonly Case[] = [
  { title: 'an app without keys is one process', config: {} },
  { title: 'instances max', app: { instances: 'max' }, whole: { app: 'app.js' } },
  { title: 'instances 0', app: { instances: 0, exec_mode: 'cluster' }, whole: { app: 'app.js' } },
  { title: 'instances 4', app: { instances: 4 }, config: { processes: 4 } },
  { title: "instances '4'", app: { instances: '4' }, config: { processes: 4 } },
  {
    title: 'instances -1',
    app: { instances: -1 },
    whole: { app: 'app.js' },
    left: ['app: instances'],
  },
  {
    title: 'instances many',
    app: { instances: 'many' },
    whole: { app: 'app.js' },
    left: ['app: instances'],
  },
  {
    title: 'instances 1000',
    app: { instances: 1000 },
    whole: { app: 'app.js' },
    left: ['app: instances'],
  },
  { title: 'exec_mode cluster alone', app: { exec_mode: 'cluster' }, config: {} },
  {
    title: 'fork and 4',
    app: { exec_mode: 'fork', instances: 4 },
    config: {},
    left: ['app: instances'],
  },
  { title: 'name', app: { name: 'shop' }, config: { name: 'shop' } },
  { title: 'a name with a space', app: { name: 'my shop' }, config: {}, left: ['my shop: name'] },
  { title: 'args as array', app: { args: ['-a', 1] }, config: { args: ['-a', '1'] } },
  {
    title: 'args as text',
    app: { args: `-a "b c" --d='e f'  g` },
    config: { args: ['-a', 'b c', '--d=e f', 'g'] },
  },
  { title: 'args as number', app: { args: 5 }, config: {}, left: ['app: args'] },
  { title: '300M', app: { max_memory_restart: '300M' }, config: { maxRssBytes: 314_572_800 } },
  { title: '1G', app: { max_memory_restart: '1G' }, config: { maxRssBytes: 2 ** 30 } },
  { title: '5K', app: { max_memory_restart: '5K' }, config: { maxRssBytes: 5120 } },
  { title: 'bytes', app: { max_memory_restart: 7 }, config: { maxRssBytes: 7 } },
  {
    title: 'much',
    app: { max_memory_restart: 'much' },
    config: {},
    left: ['app: max_memory_restart'],
  },
  { title: 'cron_restart', app: { cron_restart: '0 4 * * *' }, config: { reloadAt: '0 4 * * *' } },
  { title: 'cron', app: { cron: '* * * * *' }, config: { reloadAt: '* * * * *' } },
  { title: 'cron_restart 0, which is never', app: { cron_restart: 0 }, config: {} },
  { title: 'bad cron_restart', app: { cron_restart: {} }, config: {}, left: ['app: cron_restart'] },
  { title: 'kill_timeout', app: { kill_timeout: 1600 }, config: { drainTimeoutMs: 1600 } },
  {
    title: 'kill_timeout 5s',
    app: { kill_timeout: '5s' },
    config: {},
    left: ['app: kill_timeout'],
  },
  { title: 'listen_timeout', app: { listen_timeout: '8000' }, config: { startTimeoutMs: 8000 } },
  { title: 'max_restarts', app: { max_restarts: 10 }, config: { maxFailures: 10 } },
  { title: 'max_restarts 0', app: { max_restarts: 0 }, config: { maxFailures: 1 } },
  { title: 'node_args', app: { node_args: '--a --b' }, config: { nodeFlags: ['--a', '--b'] } },
  { title: 'interpreterArgs', app: { interpreterArgs: ['--a'] }, config: { nodeFlags: ['--a'] } },
  {
    title: 'node_args and source maps',
    app: { node_args: '--a', source_map_support: true },
    config: { nodeFlags: ['--a', '--enable-source-maps'] },
  },
  { title: 'no source maps', app: { source_map_support: false }, config: {} },
  { title: 'watch', app: { watch: true }, config: { reloadOnChange: true } },
  { title: 'watch false', app: { watch: false }, config: {} },
  { title: 'watch folders', app: { watch: ['src'] }, config: {}, left: ['app: watch'] },
  { title: 'uid and gid', app: { uid: 'shop', gid: 100 }, config: { user: 'shop', group: 100 } },
  { title: 'pid_file', app: { pid_file: 'a.pid' }, config: { pidFile: 'a.pid' } },
  { title: 'pid', app: { pid: '~/a.pid' }, config: { pidFile: join(homedir(), 'a.pid') } },
  { title: 'cwd of the file', app: { cwd: './' }, config: {} },
  {
    title: 'cwd elsewhere',
    app: { cwd: 'sub', out_file: 'a.log' },
    config: { app: 'sub/app.js', log: { file: 'sub/a.log' } },
    left: ['app: cwd'],
  },
  { title: 'instance_var', app: { instance_var: 'N' }, config: {}, left: ['app: instance_var'] },
  { title: 'usual instance_var', app: { instance_var: 'NODE_APP_INSTANCE' }, config: {} },
  { title: 'autorestart', app: { autorestart: true }, config: {} },
  { title: 'no autorestart', app: { autorestart: false }, config: {}, left: ['app: autorestart'] },
  { title: 'an unknown key', app: { colour: 1 }, config: {}, left: ['app: colour'] },
  ...[
    ...['ignore_watch', 'increment_var', 'min_uptime', 'namespace', 'wait_ready'],
    ...['restart_delay', 'exp_backoff_restart_delay', 'shutdown_with_message', 'stop_exit_codes'],
    ...['log_date_format', 'filter_env', 'append_env_to_name', 'watch_delay', 'vizion', 'treekill'],
  ].map((key) => ({
    title: key,
    app: { [key]: 'x' },
    config: key === 'log_date_format' ? { log: { format: 'text' } } : {},
    left: [`app: ${key}`],
  })),
  { title: 'out_file', app: { out_file: 'logs/a.log' }, config: { log: { file: 'logs/a.log' } } },
  {
    title: 'two logs',
    app: { out: 'a.log', err: 'b.log', merge_logs: true },
    config: { log: { file: 'a.log' } },
    left: ['app: error_file'],
  },
  { title: 'the same log twice', app: { out: 'a', error: './a' }, config: { log: { file: 'a' } } },
  { title: 'error_file alone', app: { error_file: 'b' }, config: { log: { file: 'b' } } },
  {
    title: 'a combined log',
    app: { log_file: 'c', merge_logs: false, log_type: 'json', time: true },
    config: { log: { file: 'c', format: 'json' } },
    left: ['app: merge_logs'],
  },
  {
    title: 'logs to nowhere',
    app: { out_file: '/dev/null', error_file: 'NULL' },
    config: {},
    left: ['app: out_file', 'app: error_file'],
  },
  { title: 'log_file true', app: { log: true }, config: {}, left: ['app: log_file'] },
  { title: 'time', app: { time: true }, config: { log: { format: 'text' } } },
  { title: 'json without a file', app: { log_type: 'json' }, config: { log: { format: 'json' } } },
  {
    title: 'env',
    app: { env: { A: 'a', B: 1, C: true, PORT: 8080 } },
    config: { port: 8080, env: { A: 'a', B: '1', C: 'true' } },
  },
  {
    title: 'a socket in PORT',
    app: { env: { PORT: '/tmp/s' } },
    config: { env: { PORT: '/tmp/s' } },
  },
  { title: 'port', app: { port: 80, env: { PORT: 1 } }, config: { port: 80 } },
  { title: 'a port out of range', app: { port: 70_000 }, config: {}, left: ['app: port'] },
  {
    title: 'env of objects',
    app: { env: { A: {}, B: 'b' } },
    config: { env: { B: 'b' } },
    left: ['app: env.A'],
  },
  { title: 'env as text', app: { env: 'A=1' }, config: {}, left: ['app: env'] },
  {
    title: 'an environment that is not chosen',
    app: { env: { A: 'a' }, env_production: { A: 'p' } },
    config: { env: { A: 'a' } },
    left: ['app: env_production'],
  },
  {
    title: 'an environment that is chosen',
    app: { env: { A: 'a', B: 'b' }, env_production: { A: 'p', PORT: 80 }, env_test: {} },
    options: { env: 'production' },
    config: { port: 80, env: { A: 'p', B: 'b' } },
  },
  { title: 'interpreter node', app: { interpreter: 'node' }, config: {} },
  {
    title: 'another node',
    app: { interpreter: '/opt/node' },
    config: {},
    left: ['app: interpreter'],
  },
  { title: 'a compiler', app: { exec_interpreter: 'tsx' }, config: {}, left: ['app: interpreter'] },
  { title: 'an app alone', file: { script: 'app.js' }, config: {} },
  { title: 'an array', file: [{ exec: 'app.js' }], config: {} },
  { title: 'one app as object', file: { apps: { script: './app.js' } }, config: {} },
  {
    title: 'deploy',
    file: { apps: [{ script: 'app.js' }], deploy: {} },
    config: {},
    left: ['deploy'],
  },
  {
    title: 'two apps',
    file: {
      apps: [
        { script: 'app.js', name: 'a', env: { NODE_ENV: 'production', PORT: 1, X: 1 } },
        { script: 'sub/app.js', name: 'b', env: { NODE_ENV: 'production', PORT: 2 }, watch: true },
      ],
    },
    whole: {
      env: { NODE_ENV: 'production' },
      apps: [
        { ...one, name: 'a', port: 1 },
        { ...one, app: 'sub/app.js', name: 'b', port: 2 },
      ],
    },
    left: ['a: env.X', 'b: reloadOnChange'],
  },
  {
    title: 'apps of one name',
    file: {
      apps: [
        { script: 'sub/app.js', args: 'a' },
        { script: 'sub/app.js', args: 'b' },
        { script: 'app.js', name: 'sub-2' },
        { script: 'app.js', name: 'sub' },
      ],
    },
    whole: {
      apps: [
        { ...one, app: 'sub/app.js', args: ['a'] },
        { ...one, app: 'sub/app.js', name: 'sub-3', args: ['b'] },
        { ...one, name: 'sub-2' },
        { ...one, name: 'sub-4' },
      ],
    },
    left: ['sub: name', 'sub: name'],
  },
  {
    title: 'one of two apps',
    file: { apps: [{ script: 'a.js' }, { script: 'app.js', name: 'b', node_args: '--a' }] },
    options: { only: 'b' },
    config: { name: 'b', nodeFlags: ['--a'] },
  },
  {
    title: 'apps of other languages',
    file: {
      apps: [
        { name: 'a', script: 'a.py' },
        { name: 'b', script: 'b', interpreter: 'bash' },
        { name: 'c', script: 'npm', args: 'start' },
        { script: 'app.js' },
      ],
    },
    config: {},
    left: ['a: the app', 'b: the app', 'c: the app'],
  },
];

for (const { title, app, file, options, config, whole, left = [] } of cases) {
  test(`of an ecosystem file: ${title}`, (t) => {
    const at = folder(t);
    mkdirSync(join(at, 'sub'));
    for (const name of ['app.js', 'sub/app.js']) writeFileSync(join(at, name), '');
    const content = file ?? { apps: [{ script: 'app.js', ...app }] };
    const found = fromPm2(content, { folder: at, ...options });
    assert.deepEqual(JSON.parse(JSON.stringify(found.config)), whole ?? { ...one, ...config });
    const left2 = found.notes.map((note) => note.slice(0, note.indexOf(' is left out: ')));
    const name = (each: string) =>
      each.replace(/^app: /, `${/^[^:]*/.exec(left2[0] ?? '')?.[0]}: `);
    assert.deepEqual(left2, left.map(name));
    const path = join(at, 'manycore.config.json');
    writeFileSync(path, JSON.stringify(found.config));
    startConfig(path);
    servePlan(undefined, [], { config: path });
  });
}

const bad: readonly [file: unknown, options: Omit<Pm2Options, 'folder'>, message: RegExp][] = [
  [{ apps: [] }, {}, /^it has no apps: /],
  [{}, {}, /^apps\[0\] has no script: /],
  ['app.js', {}, /^apps\[0\] has no script: /],
  [undefined, {}, /^apps\[0\] has no script: /],
  [{ apps: [{ script: 'a.js' }, null] }, {}, /^apps\[1\] has no script: /],
  [{ apps: [{ script: 5 }] }, {}, /^apps\[0\] has no script: /],
  [{ script: 'a.js', name: 'a' }, { only: 'b' }, /^there is no app b: there are a$/],
  [{ script: 'a.js', env_test: {} }, { env: 'x' }, /^no app has env_x: there is env_test$/],
  [{ script: 'a.js' }, { env: 'x' }, /^no app has env_x: there is none$/],
];
for (const [file, options, message] of bad) {
  test(`refused in one sentence: ${JSON.stringify(file)} ${JSON.stringify(options)}`, () => {
    assert.throws(() => fromPm2(file, { folder: '/', ...options }), {
      code: 'OPTION_INVALID',
      message,
    });
  });
}

function init(cwd: string, ...args: string[]) {
  const all = [command, 'init', 'pm2', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { cwd, encoding: 'utf8' });
  return { status, stdout, stderr };
}

for (const [name, text] of [
  ['ecosystem.config.js', "module.exports = { apps: [{ script: 'app.js' }] };"],
  ['ecosystem.config.cjs', "module.exports = { apps: [{ script: 'app.js' }] };"],
  ['ecosystem.config.mjs', "export default { apps: [{ script: 'app.js' }] };"],
  ['ecosystem.json', '{ "apps": [{ "script": "app.js" }] }'],
] as const) {
  test(`the command finds and reads ${name}`, (t) => {
    const at = folder(t);
    writeFileSync(join(at, name), text);
    const { status, stdout, stderr } = init(at);
    assert.deepEqual([status, stderr, JSON.parse(stdout)], [0, '', one]);
  });
}

test('keys that are left out are lines on stderr, and the file is written once', (t) => {
  const at = folder(t);
  writeFileSync(
    join(at, 'ecosystem.config.cjs'),
    "module.exports = { apps: { script: 'app.js', name: 'shop', min_uptime: 5 }, deploy: {} }",
  );
  const { status, stdout, stderr } = init(at, '--write');
  assert.equal(status, 0);
  assert.equal(
    stderr,
    'manycore: deploy is left out: copy the program, then start manycore reload\n' +
      'manycore: shop: min_uptime is left out: a process that has served for 10 s ends a row of failures\n',
  );
  assert.match(stdout, /manycore\.config\.json is written\. Then:/);
  const written = readFileSync(join(at, 'manycore.config.json'), 'utf8');
  assert.deepEqual(JSON.parse(written), { ...one, name: 'shop' });
  assert.match(init(at, '--write').stderr, /there is a file .*: remove it first/);
});

for (const [name, text, message] of [
  [
    undefined,
    '',
    /^manycore: there is no ecosystem\.config\.js here: .* \(CLI_FILE_NOT_FOUND\)\n$/,
  ],
  ['none.js', undefined, /^manycore: there is no file .*none\.js: .* \(CLI_FILE_NOT_FOUND\)\n$/],
  ['a.yml', 'apps:', /^manycore: .*a\.yml is YAML: .* \(OPTION_INVALID\)\n$/],
  ['a.json', '{ apps }', /^manycore: .*a\.json cannot be read: .* \(OPTION_INVALID\)\n$/],
  [
    'a.cjs',
    'throw new Error("no key")',
    /^manycore: .*a\.cjs cannot be read: no key \(OPTION_INVALID\)\n$/,
  ],
  ['a.cjs', 'module.exports = [', /^manycore: .*a\.cjs cannot be read: .* \(OPTION_INVALID\)\n$/],
  ['a.cjs', '', /^manycore: .*a\.cjs: apps\[0\] has no script: .* \(OPTION_INVALID\)\n$/],
  [
    'a.cjs',
    'module.exports = { script: "a.py" }',
    /^manycore: a: the app is left out: .*\nmanycore: .*a\.cjs has no app .* \(OPTION_INVALID\)\n$/,
  ],
] as const) {
  test(`a bad file is one sentence: ${name} ${text}`, (t) => {
    const at = folder(t);
    if (name !== undefined && text !== undefined) writeFileSync(join(at, name), text);
    const { status, stdout, stderr } = init(at, ...(name === undefined ? [] : [name]));
    assert.deepEqual([status, stdout], [2, '']);
    assert.match(stderr, message);
  });
}
