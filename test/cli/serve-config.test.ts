// Names of keys in the configuration of `manycore serve`.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Configuration } from '../../src/cli/commands/serve/reload.js';
import {
  type ServeFlags,
  servePlan,
  startConfig,
} from '../../src/cli/commands/serve/serve-config.js';

/** Writes a configuration and returns its path. */
function configWith(t: TestContext, content: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'app.js'), '');
  const file = join(folder, 'manycore.config.json');
  writeFileSync(file, JSON.stringify(content));
  return file;
}

/** Both readers of the file. */
const readers = {
  servePlan: (config: string) => servePlan(undefined, [], { config }),
  startConfig,
};

for (const [reader, read] of Object.entries(readers)) {
  for (const [content, hint] of [
    [{ reloadOnChnge: true }, 'did you mean reloadOnChange?'],
    [{ nodeFlag: ['--expose-gc'] }, 'did you mean nodeFlags?'],
    [{ pidfile: 'a.pid' }, 'did you mean pidFile?'],
    [{ drainTimeout: 5 }, 'did you mean drainTimeoutMs?'],
    [{ watch: true }, 'did you mean reloadOnChange?'],
    [{ script: 'app.js' }, 'did you mean app?'],
    [{ node_args: [] }, 'did you mean nodeFlags?'],
    [{ pid_file: 'a.pid' }, 'did you mean pidFile?'],
    [{ kill_timeout: 5 }, 'did you mean drainTimeoutMs?'],
    [{ apps: [{ statik: '.' }] }, 'did you mean static?'],
    [{ apps: [{ script: 'app.js' }] }, 'did you mean app?'],
    [
      { apps: [{ node_args: [] }] },
      'processes get the flags of the Node that starts them, and manycore.config.json has nodeFlags',
    ],
    [
      { apps: [{ env: {} }] },
      'processes have the environment of the program that starts them, and manycore.config.json has env for all its apps',
    ],
    [{ apps: [{ watch: true }] }, 'use the flag --reload-on-change of manycore serve'],
  ] as const) {
    test(`${reader}: the key in ${JSON.stringify(content)} gets the hint: ${hint}`, (t) => {
      const path = configWith(t, { app: 'app.js', ...content });
      assert.throws(
        () => read(path),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, 'OPTION_INVALID');
          assert.ok(error.message.endsWith(`; ${hint}`), error.message);
          return true;
        },
      );
    });
  }

  test(`${reader}: every key of the configuration is accepted`, (t) => {
    const path = configWith(t, {
      app: 'app.js',
      pidFile: 'a.pid',
      reloadOnChange: false,
      metrics: 0,
      env: { A: '1' },
      nodeFlags: [],
      affinity: [0],
      reasons: { processes: 'measured' },
      processes: 1,
      loops: 1,
    });
    assert.doesNotThrow(() => read(path));
  });
}

test('--no-rescue overrides the file, and without it the file decides', (t) => {
  const rescueOf = (content: object, flags: object): unknown => {
    const config = configWith(t, { app: 'app.js', ...content });
    return servePlan(undefined, [], { config, ...flags }).apps[0]?.options.rescue;
  };
  // The parser of the command line says true where the flag is not given.
  assert.equal(rescueOf({}, { rescue: true }), undefined);
  assert.equal(rescueOf({ rescue: false }, { rescue: true }), false);
  assert.equal(rescueOf({ rescue: true }, { rescue: false }), false);
});

for (const name of ['status', 'health'] as const) {
  test(`${name} is one of each app, in the file and as a flag`, (t) => {
    const several = configWith(t, {
      apps: [
        { name: 'one', app: 'app.js', [name]: 1 },
        { name: 'two', app: 'app.js', [name]: 2 },
      ],
    });
    const { apps } = servePlan(undefined, [], { config: several });
    assert.deepEqual(
      apps.map(({ options }) => options[name]),
      [1, 2],
    );
    const refused = { code: 'OPTION_INVALID', message: new RegExp(`has a ${name} of its own`) };
    const withFlag = { config: several, [name]: 3 };
    assert.throws(() => servePlan(undefined, [], withFlag), refused);
    const shared = configWith(t, { [name]: 1, apps: [{ app: 'app.js' }, { app: 'app.js' }] });
    assert.throws(() => servePlan(undefined, [], { config: shared }), refused);
  });
}

test('files of certificates are relative to the folder of the configuration', (t) => {
  const files = { cert: 'cert.pem', key: 'key.pem' };
  const names = { 'a.example': { cert: 'a.pem', key: '/a/key.pem' } };
  const config = configWith(t, { app: 'app.js', tls: { ...files, names } });
  const folder = dirname(config);
  assert.deepEqual(servePlan(undefined, [], { config }).apps[0]?.options.tls, {
    cert: join(folder, 'cert.pem'),
    key: join(folder, 'key.pem'),
    names: { 'a.example': { cert: join(folder, 'a.pem'), key: '/a/key.pem' } },
  });
});

/** Reads it as the command does at its start; returns the message of the error, with FILE for its path. */
function refusalOf(t: TestContext, content: object, flags: ServeFlags = {}): string {
  const config = configWith(t, content);
  try {
    new Configuration(() => servePlan(undefined, [], { config, ...flags }));
    return 'no refusal';
  } catch (error) {
    assert.equal(Object(error).code, 'OPTION_INVALID');
    return Object(error).message.replaceAll(config, 'FILE').replaceAll(dirname(config), 'FOLDER');
  }
}

test('apps that would have one name are refused by the readers of the file', (t) => {
  const way = 'give each a name of its own, as "name"';
  const twice = { apps: [{ app: 'app.js', name: 'shop' }, { app: './app.js' }, { app: 'app.js' }] };
  const name = dirname(configWith(t, {})).split('/').at(-1) ?? '';
  assert.match(name, /^manycore-/); // that of the folder, since app.js says little
  const both =
    /^FILE: apps\[1\] and apps\[2\] are both called (manycore-\w+): give each a name of its own, as "name": "\1-2"$/;
  assert.match(refusalOf(t, twice), both);
  const named = {
    apps: [
      { app: 'app.js', name: 'shop' },
      { static: '.', name: 'shop' },
    ],
  };
  assert.equal(
    refusalOf(t, named),
    `FILE: apps[0] and apps[1] are both called shop: ${way}: "shop-2"`,
  );
  assert.throws(() => startConfig(configWith(t, named)), /apps\[0\] and apps\[1\] are both called/);
  const folders = { apps: [{ static: '.' }, { cgi: '.' }] };
  assert.match(refusalOf(t, folders), /apps\[0\] and apps\[1\] are both called/);
  assert.equal(
    refusalOf(t, { apps: [{ app: 'app.js' }, { static: '.' }] }, { name: 'a' }),
    '--name a is for one app: give each of several a name in FILE',
  );
});

test('a wrong option is refused with its file and its app, and one of a flag without', (t) => {
  const one = { app: 'app.js', name: 'one' };
  const two = { app: 'app.js', name: 'two' };
  const text = 'port is -1: it must be an integer from 0 to 65535';
  for (const [expected, content, flags] of [
    [`FILE: ${text}`, { ...one, port: -1 }, {}],
    [`FILE: apps[1] (two): ${text}`, { apps: [one, { ...two, port: -1 }] }, {}],
    [`FILE: ${text}`, { port: -1, apps: [one, two] }, {}],
    [text, { apps: [one, two] }, { port: -1 }],
    [text, { ...one, port: 5 }, { port: -1 }],
  ] as const) {
    const message = refusalOf(t, content, flags);
    assert.equal(message, expected);
  }
  const early = refusalOf(t, { apps: [one, { app: 5 }] });
  assert.match(early, /^FILE cannot be read as a configuration: apps\[1\]: app is 5: /);
  const config = configWith(t, { apps: [one, { ...two, app: 'none.js' }] });
  const missing = {
    code: 'CLI_FILE_NOT_FOUND',
    message: /config\.json: apps\[1\] \(two\): there is no file /,
  };
  assert.throws(() => servePlan(undefined, [], { config }), missing);
  const wrong = configWith(t, { apps: [one, { ...two, maxFailures: 0 }] });
  assert.throws(() => startConfig(wrong), /config\.json: apps\[1\]: maxFailures is 0: /);
});

test('a wrong pattern is refused with its file and its app', async (t) => {
  const apps = [
    { app: 'app.js', name: 'one' },
    { app: 'app.js', name: 'two', reloadAt: 'x' },
  ];
  const config = configWith(t, { apps });
  const read = (flags: ServeFlags) =>
    new Configuration(() => servePlan(undefined, [], { config, ...flags }));
  await assert.rejects(
    read({}).checkPatterns(),
    /config\.json: apps\[1\] \(two\): reloadAt is "x": /,
  );
  await assert.rejects(
    read({ reloadAt: 'y' }).checkPatterns(),
    /^CodedError: reloadAt is "y": |reloadAt is "y"/,
  );
});
