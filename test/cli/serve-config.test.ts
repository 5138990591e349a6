// Names of keys in the configuration of `manycore serve`.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { servePlan, startConfig } from '../../src/cli/commands/serve/serve-config.js';

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
        { app: 'app.js', [name]: 1 },
        { app: 'app.js', [name]: 2 },
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
