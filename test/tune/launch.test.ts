import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Configuration } from '../../src/tune/configuration.js';
import { currentOf, type Launch, launchOf, programOf } from '../../src/tune/program/launch.js';
import { startOf } from '../../src/tune/program/start.js';

const main = '/bin/manycore';
const plain = { serve: false, main };
const served = { serve: true, main };
const node = process.execPath;

/** Sets a variable of our environment for this test. */
function withVariable(t: TestContext, name: string, value: string | undefined): void {
  const before = process.env[name];
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
  t.after(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
}

function commandOf(words: string, configuration: Configuration, options = plain): string {
  return launched(words, configuration, options).command.join(' ');
}

function launched(words: string, configuration: Configuration, options = plain): Launch {
  return launchOf(programOf(words.split(' '), options), startOf(configuration));
}

test('without changes a command is as given', () => {
  for (const words of [
    'node app.js --max-old-space-size=1',
    './start.sh -x',
    '/opt/node --a b.js',
  ]) {
    assert.equal(commandOf(words, {}), words);
  }
});

test('flags of Node go between node and the program', () => {
  const configuration = { heapLimit: 512, gcThreads: 0, semiSpace: 64 };
  assert.equal(
    commandOf('node app.js arg', configuration),
    'node --max-old-space-size=512 --max-semi-space-size=64 --single-threaded-gc app.js arg',
  );
});

test('a flag that the configuration decides does not stay, also with underscores and behind others', () => {
  assert.equal(
    commandOf('node -r ./hook.js --max_old_space_size=60 --no-warnings app.js', { heapLimit: 512 }),
    'node --max-old-space-size=512 -r ./hook.js --no-warnings app.js',
  );
  assert.equal(
    commandOf('node --v8-pool-size=3 app.js --v8-pool-size=9', { gcThreads: 0 }),
    'node --single-threaded-gc app.js --v8-pool-size=9',
  );
});

test('NODE_OPTIONS loses the flag that is set, and keeps the rest', (t) => {
  withVariable(t, 'NODE_OPTIONS', '--max-old-space-size=60 --no-warnings');
  const launch = launched('node app.js', { heapLimit: 512 });
  assert.equal(launch.env['NODE_OPTIONS'], '--no-warnings');
  const asItIs = launched('node app.js', {});
  assert.equal(asItIs.env['NODE_OPTIONS'], '--max-old-space-size=60 --no-warnings');
});

test('programs that node does not start get flags in NODE_OPTIONS', (t) => {
  withVariable(t, 'NODE_OPTIONS', '--no-warnings');
  const { command, env } = launched('npm start', { heapLimit: 512 });
  assert.deepEqual(command, ['npm', 'start']);
  assert.equal(env['NODE_OPTIONS'], '--no-warnings --max-old-space-size=512');
});

test('threads, workers and cores go where the program finds them', () => {
  const configuration = { blockingThreads: 8, poolWorkers: 3, affinity: [0, 1] };
  const { env, cores } = launched('node app.js', configuration);
  assert.deepEqual([env['UV_THREADPOOL_SIZE'], env['MANYCORE_CORES']], ['8', '3']);
  assert.deepEqual(cores, [0, 1]);
});

const loops = { loops: { processes: 1, loops: 2 } };
for (const words of [
  'manycore serve -P 8 --loops=4 app.js --port 80 -- -P 3',
  'npx manycore serve --processes 8 -L 4 app.js --port 80 -- -P 3',
  'npx -y manycore serve --processes=8 app.js --port 80 -- -P 3',
  'node /x/node_modules/.bin/manycore serve -L 4 app.js --port 80 -- -P 3',
  'manycore serve -P8 -L4 app.js --port 80 -- -P 3',
]) {
  test(`${words}: processes and loops are those of the configuration, and the rest stays`, () => {
    const by = words.startsWith('node ') ? 'node' : node;
    assert.equal(
      commandOf(words, loops),
      `${by} ${main} serve --processes=1 --loops=2 app.js --port 80 -- -P 3`,
    );
  });
}

test('with --serve a program runs under manycore serve, with its flags and arguments', () => {
  assert.equal(
    commandOf('/n/node --no-warnings app.js -x', { ...loops, heapLimit: 64 }, served),
    `/n/node --max-old-space-size=64 --no-warnings ${main} serve --processes=1 --loops=2 app.js -- -x`,
  );
});

test('only what node starts can be served', () => {
  assert.throws(() => programOf(['npm', 'start'], served), { code: 'OPTION_INVALID' });
});

test('current values are read from command line and environment', (t) => {
  withVariable(t, 'NODE_OPTIONS', '--max-old-space-size=60 --max-semi-space-size=8');
  withVariable(t, 'UV_THREADPOOL_SIZE', '1');
  withVariable(t, 'MANYCORE_CORES', undefined);
  const current = currentOf(programOf('node --max-old-space-size=70 app.js'.split(' '), plain));
  assert.deepEqual(current, {
    loops: {},
    poolWorkers: undefined,
    blockingThreads: 1,
    heapLimitMb: 70,
    semiSpaceMb: 8,
    gcThreads: undefined,
  });
  const { loops: now } = currentOf(programOf('manycore serve -P 4 --loops=2 a'.split(' '), plain));
  assert.deepEqual(now, { processes: 4, loops: 2 });
  const words = 'manycore serve -P4 -L 2 a -P8 -- -P 3 -L9';
  const { loops: last } = currentOf(programOf(words.split(' '), plain));
  assert.deepEqual(
    last,
    { processes: 8, loops: 2 },
    'the last one counts, and not what is behind --',
  );
});
