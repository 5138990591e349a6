// The last line of a search: the command that uses the result, and the file that it reads.

import assert from 'node:assert/strict';
import { get } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { mergedConfig, writeJson } from '../../src/tune/config-file.js';
import type { Configuration } from '../../src/tune/configuration.js';
import { useOf } from '../../src/tune/use.js';
import { startWith } from '../cli/serving.js';
import { skip } from '../serve/served.js';
import { folderWith } from './running.js';

const threads: Configuration = { blockingThreads: 8 };
const loops: Configuration = { loops: { processes: 1, loops: 2 } };
const heap: Configuration = { heapLimit: 512 };

/** `undefined`: the variable is not set in our environment. */
function withThreads(t: TestContext, value: string | undefined): void {
  const before = process.env['UV_THREADPOOL_SIZE'];
  const set = (to: string | undefined): void => {
    if (to === undefined) delete process.env['UV_THREADPOOL_SIZE'];
    else process.env['UV_THREADPOOL_SIZE'] = to;
  };
  set(value);
  t.after(() => set(before));
}

for (const [words, advice, expected] of [
  ['manycore serve app.js', threads, 'manycore serve --config c.json app.js'],
  [
    'npx manycore serve -P 8 --loops=4 app.js --port 80 -- -P 3',
    loops,
    'npx manycore serve --config c.json app.js --port 80 -- -P 3',
  ],
  [
    'npx manycore serve -P 8 app.js',
    threads,
    'npx manycore serve --config c.json -P 8 app.js', // decided by hand, not by tune
  ],
  [
    'node --max-old-space-size=60 bin/manycore serve app.js',
    heap,
    'node bin/manycore serve --config c.json app.js',
  ],
  [
    'node --no-warnings bin/manycore serve app.js',
    heap,
    'manycore tune --apply --config c.json -- node --no-warnings bin/manycore serve app.js',
  ],
  [
    'manycore serve --config mine.json',
    heap,
    'manycore tune --apply --config c.json -- manycore serve --config mine.json',
  ],
  ['node app.js', heap, 'manycore tune --apply --config c.json -- node app.js'],
  ["npm start it's", heap, "manycore tune --apply --config c.json -- npm start 'it'\\''s'"],
] as const) {
  test(`${words}: with what was found it is ${expected}`, (t) => {
    withThreads(t, undefined);
    const options = { command: words.split(' '), main: '/bin/manycore' };
    assert.equal(useOf(options, advice, 'c.json').command, expected);
  });
}

test('with --serve it is served', () => {
  const options = { command: ['node', 'app.js', '-x'], serve: true, main: '/bin/manycore' };
  const { command } = useOf(options, loops, 'c.json');
  assert.equal(command, 'manycore serve --config c.json app.js -- -x');
});

test('a variable that would count more than the file is taken out', (t) => {
  withThreads(t, '1');
  const options = { command: ['manycore', 'serve', 'app.js'], main: '' };
  const { command } = useOf(options, threads, 'c.json');
  assert.equal(command, 'env -u UV_THREADPOOL_SIZE manycore serve --config c.json app.js');
});

test('the file names the program that is served, unless it serves something already', (t) => {
  const folder = folderWith(t, { 'app.mjs': '' });
  const app = join(folder, 'app.mjs');
  const options = { command: ['manycore', 'serve', '-P', '2', app, '--', 'x'], main: '' };
  const use = useOf(options, threads, join(folder, 'c.json'));
  assert.deepEqual(use.app, { app: 'app.mjs', args: ['x'] });
  const { app: named, args } = mergedConfig({}, threads, {}, use.app);
  assert.deepEqual([named, args], ['app.mjs', ['x']]);
  const kept = mergedConfig({ static: 'public' }, threads, {}, use.app);
  assert.deepEqual([kept['static'], kept['app']], ['public', undefined]);
  const plain = useOf({ command: ['node', app], main: '' }, threads, 'c.json');
  assert.equal(plain.app, undefined);
});

test('the written file takes effect with the printed command and with manycore serve alone', {
  skip,
}, async (t) => {
  withThreads(t, undefined);
  const folder = folderWith(t, {
    'app.mjs': `import { createServer } from 'node:http';
      createServer((_, response) => response.end(process.env.UV_THREADPOOL_SIZE)).listen(0);`,
  });
  const [app, config] = [join(folder, 'app.mjs'), join(folder, 'manycore.config.json')];
  const advice = { blockingThreads: 11, ...loops };
  const options = { command: ['manycore', 'serve', '-P', '3', app], main: '' };
  const { command, app: named } = useOf(options, advice, config);
  writeJson(config, mergedConfig({}, advice, {}, named));
  const [, printed = ''] = command.split(' serve ');
  for (const flags of [printed.split(' '), []]) {
    const { port, pids } = await startWith(t, flags, { cwd: folder });
    assert.deepEqual([await bodyAt(port), pids.length], ['11', 1]);
  }
});

function bodyAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1' }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve(body));
    }).on('error', reject);
  });
}
