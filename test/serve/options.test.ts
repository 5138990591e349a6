// Options of `serve`: checks and defaults.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { nameOfProgram } from '../../src/serve/name.js';
import { fillServeOptions } from '../../src/serve/options.js';
import { ownerOf } from '../../src/serve/supervisor/owner.js';

test('users and groups are names or numbers, which need no name', () => {
  assert.deepEqual(ownerOf('root', undefined), { uid: 0, gid: 0 });
  assert.deepEqual(ownerOf('0', 'root'), { uid: 0, gid: 0 });
  assert.deepEqual(ownerOf(0, undefined), { uid: 0, gid: 0 });
  assert.deepEqual(ownerOf(undefined, 0), { uid: undefined, gid: 0 });
  assert.deepEqual(ownerOf(123_456_789, '987654321'), { uid: 123_456_789, gid: 987_654_321 });
  assert.equal(ownerOf(undefined, undefined), undefined);
  assert.throws(() => ownerOf(123_456_789, undefined), { code: 'OPTION_INVALID' });
  assert.throws(() => ownerOf('nobody-at-all', 0), { code: 'OPTION_INVALID' });
});

test('maxFailures is a number, or endless', () => {
  for (const maxFailures of [1, 5, 1e9, Infinity]) {
    assert.equal(fillServeOptions({ maxFailures }).maxFailures, maxFailures);
  }
  for (const maxFailures of [0, -1, 1.5, Number.NaN, '5', 'never', null]) {
    assert.throws(() => Reflect.apply(fillServeOptions, undefined, [{ maxFailures }]), {
      code: 'OPTION_INVALID',
    });
  }
});

for (const [name, right] of [
  ['maxConnectionsPerProcess', 1],
  ['maxRequestsPerProcess', 1],
  ['maxAgeMs', 1000],
  ['maxRssBytes', 1],
] as const) {
  test(`${name} is a whole number, or never`, () => {
    assert.equal(fillServeOptions({ [name]: right })[name], right);
    assert.equal(fillServeOptions()[name], Infinity);
    for (const wrong of [0, right - 1, -1, right + 0.5, Number.NaN, '5', null, [], {}]) {
      assert.throws(
        () => Reflect.apply(fillServeOptions, undefined, [{ [name]: wrong }]),
        (error) => hasCode(error, 'OPTION_INVALID') && error.message.startsWith(`${name} is `),
      );
    }
  });
}

test('reloadAt is a text, which the start checks as a pattern', () => {
  assert.equal(fillServeOptions({ reloadAt: '0 4 * * *' }).reloadAt, '0 4 * * *');
  assert.equal(fillServeOptions().reloadAt, undefined);
  for (const reloadAt of ['', 4, null, true, [], {}, new Date()]) {
    assert.throws(
      () => Reflect.apply(fillServeOptions, undefined, [{ reloadAt }]),
      (error) => hasCode(error, 'OPTION_INVALID') && error.message.startsWith('reloadAt is '),
    );
  }
});

for (const name of ['status', 'health'] as const) {
  test(`${name} is a port, or host and port`, () => {
    assert.deepEqual(fillServeOptions({ [name]: 80 })[name], { host: '127.0.0.1', port: 80 });
    const address = { host: '::', port: 0 };
    assert.deepEqual(fillServeOptions({ [name]: address })[name], address);
    assert.equal(fillServeOptions()[name], undefined);
    for (const wrong of [
      -1,
      65_536,
      1.5,
      '80',
      null,
      true,
      {},
      { port: 80 },
      { host: 5, port: 80 },
    ]) {
      assert.throws(
        () => Reflect.apply(fillServeOptions, undefined, [{ [name]: wrong }]),
        (error) => hasCode(error, 'OPTION_INVALID') && error.message.startsWith(name),
      );
    }
  });
}

test('names of servers are as clients write them, also addresses', () => {
  const { serverNames } = fillServeOptions({
    serverNames: ['A.example.', '::1', '[::2]', '10.0.0.1'],
  });
  assert.deepEqual(serverNames, ['a.example', '[::1]', '[::2]', '10.0.0.1']);
});

test('a name is one that commands can take', () => {
  for (const name of ['shop', 'a', '2nd', 'shop@v1.2_x-y', '-']) {
    assert.equal(fillServeOptions({ name }).name, name);
  }
  for (const name of ['', '12', 'a b', 'a/b', 'é', 'x'.repeat(65), 5, null, {}]) {
    assert.throws(() => Reflect.apply(fillServeOptions, undefined, [{ name }]), {
      code: 'OPTION_INVALID',
    });
  }
});

for (const [path, name] of [
  ['/srv/shop/server.js', 'shop'],
  ['/srv/shop/dist/src/main.mjs', 'shop'],
  ['/srv/shop/worker.js', 'worker'],
  ['/srv/my shop/index.js', 'my-shop'],
  ['/srv/7/app.js', 'app'],
  ['/server.js', 'server'],
  ['/app/index.js', 'app'],
] as const) {
  test(`${path} is called ${name}`, () => assert.equal(nameOfProgram(path), name));
}

test('PORT counts where it is a port', (t) => {
  const before = process.env['PORT'];
  t.after(() => {
    if (before === undefined) delete process.env['PORT'];
    else process.env['PORT'] = before;
  });
  for (const [text, port] of [
    ['8080', 8080],
    ['/run/app.sock', 3000],
    ['', 3000],
  ] as const) {
    process.env['PORT'] = text;
    assert.equal(fillServeOptions().port, port);
  }
});

test('listenFds is a list of descriptors', () => {
  assert.deepEqual(fillServeOptions({ listenFds: [3, 4] }).listenFds, [3, 4]);
  assert.deepEqual(fillServeOptions().listenFds, []);
  for (const listenFds of [5, '3', null, { length: 1 }, [-1], ['3']]) {
    assert.throws(
      () => Reflect.apply(fillServeOptions, undefined, [{ listenFds }]),
      (error) => hasCode(error, 'OPTION_INVALID') && error.message.startsWith('listenFds is '),
    );
  }
});

test('rescue is true or false', () => {
  assert.equal(fillServeOptions().rescue, true);
  assert.equal(fillServeOptions({ rescue: false }).rescue, false);
  assert.equal(fillServeOptions({ sticky: 'address' }).rescue, false);
  assert.equal(fillServeOptions({ sticky: 'address', rescue: false }).rescue, false);
  for (const rescue of [0, 'no', [], {}]) {
    assert.throws(
      () => Reflect.apply(fillServeOptions, undefined, [{ rescue }]),
      (error) => hasCode(error, 'OPTION_INVALID') && error.message.startsWith('rescue is '),
    );
  }
});

for (const [wrong, hint] of [
  ['instances', 'did you mean processes?'],
  ['max_memory_restart', 'did you mean maxRssBytes?'],
  ['kill_timeout', 'did you mean drainTimeoutMs?'],
  ['listen_timeout', 'did you mean startTimeoutMs?'],
  ['exec_mode', 'plan names what follows the load, processes and loops set the numbers'],
  ['stop_exit_codes', 'a process that ends is replaced, whatever its exit code'],
  ['drainTimeout', 'did you mean drainTimeoutMs?'],
] as const) {
  test(`option ${wrong} of another process manager is named with its equivalent`, () => {
    assert.throws(
      () => Reflect.apply(fillServeOptions, undefined, [{ [wrong]: 1 }]),
      (error) => hasCode(error, 'OPTION_INVALID') && error.message.endsWith(`; ${hint}`),
    );
  });
}

test('sticky is a way to recognize clients', () => {
  for (const [sticky, kind, name] of [
    ['address', 'address', ''],
    [{ cookie: 'loop' }, 'cookie', 'loop'],
    [{ header: 'X-Forwarded-For' }, 'header', 'X-Forwarded-For'],
    [{ query: 'sid' }, 'query', 'sid'],
  ] as const) {
    assert.deepEqual(fillServeOptions({ sticky }).sticky, { kind, name });
  }
  assert.equal(fillServeOptions().sticky, undefined);
});

const cookie = { cookie: 'a' };
for (const [what, options] of [
  ['sticky', { sticky: 'ip' }],
  ['sticky', { sticky: true }],
  ['sticky', { sticky: null }],
  ['sticky', { sticky: 5 }],
  ['sticky', { sticky: {} }],
  ['sticky', { sticky: [] }],
  ['sticky', { sticky: Object.create(cookie) }],
  ['sticky', { sticky: { cookie: 'a', header: 'b' } }],
  ['kookie', { sticky: { kookie: 'a' } }],
  ['sticky.cookie', { sticky: { cookie: '' } }],
  ['sticky.cookie', { sticky: { cookie: 'a b' } }],
  ['sticky.header', { sticky: { header: 'a:b' } }],
  ['sticky.query', { sticky: { query: 'a=b' } }],
  ['sticky.query', { sticky: { query: 5 } }],
  ['placement', { sticky: 'address', placement: 'kernel' }],
  ['rescue', { sticky: 'address', rescue: true }],
  ['unix', { sticky: 'address', unix: '/run/a.sock' }],
  ['sticky', { sticky: cookie, tls: { cert: 'a', key: 'b' } }],
] as const) {
  test(`${JSON.stringify(options)} is refused by name`, () => {
    assert.throws(
      () => Reflect.apply(fillServeOptions, undefined, [options]),
      (error) => hasCode(error, 'OPTION_INVALID') && error.message.includes(what),
    );
  });
}
