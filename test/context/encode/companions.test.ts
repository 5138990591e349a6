// Values that are sent beside functions: AsyncLocalStorage stores, values made once per worker, functions
// named by module, errors and their stacks.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { after, test } from 'node:test';
import {
  captureSite,
  createExporter,
  createImporter,
  exportError,
  joinStacks,
  perWorker,
  task,
} from '../../../src/context/index.js';
import { CodedError, hasCode } from '../../../src/errors.js';
import { announced, currentUser } from '../fixtures/storage.js';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

test('a captured AsyncLocalStorage gives its store in the worker', async () => {
  const storage = new AsyncLocalStorage<{ user: string }>();
  const read = async () => {
    await null;
    return storage.getStore()?.user;
  };
  assert.equal(await peer.run(read), undefined);
  const users = await Promise.all(
    ['ann', 'bob', 'cy'].map((user) => storage.run({ user }, () => peer.run(read))),
  );
  assert.deepEqual(users, ['ann', 'bob', 'cy']);
  assert.equal(await peer.run(read), undefined);
});

test('a storage announced by its module gives its store to functions of that module', async () => {
  const call = () => peer.run(() => currentUser());
  assert.equal(await call(), undefined);
  assert.equal(await announced.run({ user: 'dee' }, call), 'dee');
  assert.equal(await call(), undefined);
});

test('a store that cannot travel is refused with the path', async () => {
  const storage = new AsyncLocalStorage<unknown>();
  const read = () => storage.getStore();
  await assert.rejects(
    () => storage.run({ socket: Promise.resolve() }, () => peer.run(read)),
    (error) => hasCode(error, 'TRANSFER_UNSUPPORTED') && /getStore\(\)\.socket/.test(String(error)),
  );
});

test('perWorker makes its value once in each process, at first use', async () => {
  let made = 0;
  const counter = perWorker(() => {
    made += 1;
    return { pid: process.pid, made, uses: 0 };
  });
  const use = () => {
    counter().uses += 1;
    return { ...counter() };
  };
  assert.equal(made, 0);
  const first = await peer.run(use);
  const second = await peer.run(use);
  assert.notEqual(first.pid, process.pid);
  assert.deepEqual([first.uses, second.uses, second.made], [1, 2, 1]);
  assert.equal(counter().pid, process.pid);
  assert.equal(counter(), counter());
  assert.equal(made, 1);
});

test('perWorker refuses a value that is not a function', () => {
  // @ts-expect-error: the point of the test
  assert.throws(() => perWorker(5), { code: 'OPTION_INVALID' });
});

test('task runs an export of a module, here and there', async () => {
  const url = new URL('../cases-module.js', import.meta.url);
  const hash = task<(text: string) => string>(url, 'hash');
  assert.equal(await peer.run(hash, 'x'), await hash('x'));
  assert.equal(createExporter().exportFunction(hash).state, undefined);
});

test('the error of task() names the fault in its module or export', async () => {
  assert.throws(() => task('./relative.js', 'x'), { code: 'OPTION_INVALID' });
  assert.throws(() => task('node:fs', ''), { code: 'OPTION_INVALID' });
  const failed = { code: 'TRANSFER_IMPORT_FAILED' };
  await assert.rejects(peer.run(task('node:fs', 'noSuchExport')), failed);
  await assert.rejects(peer.run(task('file:///no/such/module.js', 'x')), failed);
});

test('task refuses the program itself, which a worker would run again', () => {
  const wayOut = { code: 'OPTION_INVALID', message: /file of its own/ };
  for (const url of [import.meta.url, new URL(import.meta.url), `${import.meta.url}?again#there`]) {
    assert.throws(() => task(url, 'failing'), wayOut);
  }
});

test('the error of a task whose module fails has the module, the reason and the cause', async () => {
  const url = 'data:text/javascript,throw new RangeError("no database")';
  await assert.rejects(
    peer.run(task(url, 'find')),
    (error) =>
      hasCode(error, 'TRANSFER_IMPORT_FAILED') &&
      error instanceof Error &&
      error.message.includes(url) &&
      /: no database/.test(error.message) &&
      error.cause instanceof RangeError,
  );
});

test('a CodedError comes back as a CodedError with its code', async () => {
  await assert.rejects(
    peer.run(() => {
      throw new CodedError('POOL_BUSY', 'busy there');
    }),
    (error) =>
      error instanceof CodedError && error.code === 'POOL_BUSY' && error.message === 'busy there',
  );
});

test('a module that cannot be imported there is TRANSFER_IMPORT_FAILED', async () => {
  const importer = createImporter({ exporter: createExporter() });
  const exporter = createExporter();
  const { definitions } = exporter.exportFunction(() => currentUser());
  const damaged = definitions.map(async (id) => {
    const bytes = Buffer.from(exporter.definition(id)).toString('latin1');
    await importer.define(id, Buffer.from(bytes.replace('storage.js', 'stor_ge.js'), 'latin1'));
  });
  await assert.rejects(Promise.all(damaged), { code: 'TRANSFER_IMPORT_FAILED' });
});

test('a result that cannot travel is refused with the path', async () => {
  await assert.rejects(
    peer.run(() => ({ deep: [new WeakMap()] })),
    (error) =>
      hasCode(error, 'TRANSFER_UNSUPPORTED') &&
      /^the result cannot travel[^]*path: the result\.deep\[0\]/.test(
        error instanceof Error ? error.message : '',
      ),
  );
});

test('an error arrives without the fields that cannot travel', () => {
  const exporter = createExporter();
  const importer = createImporter({ exporter: createExporter() });
  const cause = Object.assign(new RangeError('inner'), { live: new WeakMap() });
  const error = Object.assign(new TypeError('outer', { cause }), {
    code: 'E_OUTER',
    pending: Promise.resolve(),
  });
  const { bytes, definitions } = exportError(exporter, error);
  for (const id of definitions) void importer.define(id, exporter.definition(id));
  const back = importer.importValue(bytes);
  assert.ok(back instanceof TypeError && back.cause instanceof RangeError);
  assert.equal(back.message, 'outer');
  assert.equal(back.cause.message, 'inner');
  assert.equal(Reflect.get(back, 'code'), 'E_OUTER');
  assert.equal('pending' in back || 'live' in back.cause, false);
  assert.match(back.stack ?? '', /companions\.test/);
});

test('any thrown value arrives', () => {
  const exporter = createExporter();
  const importer = createImporter({ exporter: createExporter() });
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error('trap');
      },
      getPrototypeOf() {
        throw new Error('trap');
      },
    },
  );
  for (const thrown of [hostile, Promise.resolve(), new WeakMap(), Symbol('s'), 5, undefined]) {
    const { bytes } = exportError(exporter, thrown);
    assert.doesNotThrow(() => importer.importValue(bytes));
  }
});

function failing(): never {
  throw new Error('from there');
}

test('a stack has the frames of the worker, then those of the caller, and none of ours', async () => {
  async function caller() {
    return await peer.run(() => failing());
  }
  const error: unknown = await caller().catch((reason: unknown) => reason);
  assert.ok(error instanceof Error);
  const lines = (error.stack ?? '').split('\n');
  const worker = lines.findIndex((line) => line.includes('[worker 1]'));
  assert.ok(worker > 1, error.stack);
  assert.match(lines[0] ?? '', /^Error: from there$/);
  assert.match(
    lines[1] ?? '',
    /at failing .*companions\.test\.ts:\d+:\d+|at failing .*companions\.test\.js:\d+:\d+/,
  );
  assert.ok(
    lines.slice(worker).some((line) => line.includes('caller')),
    error.stack,
  );
  assert.doesNotMatch(error.stack ?? '', /dist\/src\/|\(node:/);
});

test('the frames name the line on which the user wrote it', async () => {
  const here = (): number =>
    Number(/:(\d+):\d+\)?$/.exec(new Error('x').stack?.split('\n')[1] ?? '')?.[1]);
  assert.equal(await peer.run(here), here());
});

test('a value without a stack is left alone', () => {
  const site = captureSite(failing);
  for (const value of [undefined, 5, {}, Object.freeze(new Error('x'))]) {
    assert.doesNotThrow(() => joinStacks(value, site, 'worker 1'));
  }
});
