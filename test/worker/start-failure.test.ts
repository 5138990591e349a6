// Failures of a start that are lasting: one table of reports from a system, a process, a thread and a
// set-up. The pool gives up at once for those, and repeats the start for all others.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError } from '../../src/errors.js';
import { failureOfStart } from '../../src/worker/index.js';
import { startFailure } from '../../src/worker/parent/start-failure.js';
import type { WorkerExit, WorkerOptions } from '../../src/worker/types.js';

const options: WorkerOptions = {
  kind: 'process',
  execArgv: [],
  env: {},
  maxHeapMb: 0,
  onOutput: undefined,
  partition: undefined,
};

function withCode(code: string, cause?: unknown): Error {
  return Object.assign(new Error(code, { cause }), { code });
}

function exit(given: Partial<WorkerExit>): WorkerExit {
  return { exitCode: null, signal: null, error: undefined, ...given };
}

function byExit(given: Partial<WorkerExit>, more: Partial<WorkerOptions> = {}): number {
  return startFailure('worker 1', undefined, exit(given), { ...options, ...more }).startsToBeSure;
}

function bySetup(error: unknown): number {
  const known = { text: 'its setup failed', thrown: { error } };
  return startFailure('worker 1', known, exit({ exitCode: 1 }), options).startsToBeSure;
}

const table: readonly (readonly [what: string, found: number, expected: number])[] = [
  ...['SIGKILL', 'SIGTERM', 'SIGHUP', 'SIGINT', 'SIGBUS', 'SIGSEGV'].map(
    (signal) => [`ended by ${signal}`, byExit({ signal }), Infinity] as const,
  ),
  ...[137, 143].map((code) => [`exit code ${code}`, byExit({ exitCode: code }), Infinity] as const),
  ...[0, 1, 3, 7, 255].map((code) => [`exit code ${code}`, byExit({ exitCode: code }), 3] as const),
  ['an unknown flag', byExit({ exitCode: 9 }), 1],
  ['no heap on a full machine', byExit({ signal: 'SIGABRT' }), Infinity],
  ...['SIGABRT', 'SIGBUS', 'SIGILL', 'SIGSEGV', 'SIGTRAP'].map(
    (signal) => [`${signal} under a limit`, byExit({ signal }, { maxHeapMb: 4 }), 3] as const,
  ),
  ['SIGKILL under a limit', byExit({ signal: 'SIGKILL' }, { maxHeapMb: 4 }), Infinity],
  ...['-r', '--require', '--import', '--env-file'].flatMap((flag) => [
    [
      `no file for ${flag}`,
      byExit({ exitCode: 1 }, { execArgv: [flag, './no-such-file.mjs'] }),
      1,
    ] as const,
    [
      `a file for ${flag}`,
      byExit({ exitCode: 1 }, { execArgv: [flag, './package.json'] }),
      3,
    ] as const,
  ]),
  ['no package for -r', byExit({ exitCode: 1 }, { execArgv: ['-r', 'no-such-package'] }), 1],
  ['no heap by a flag', byExit({ exitCode: 134 }, { execArgv: ['--max-heap-size=4'] }), 3],
  ...['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ENOSPC', 'ETXTBSY'].flatMap((code) => [
    [`spawn: ${code}`, byExit({ error: withCode(code) }), Infinity] as const,
    [`thrown: ${code}`, failureOfStart(withCode(code)).startsToBeSure, Infinity] as const,
    [`set-up: ${code}`, bySetup(withCode(code)), Infinity] as const,
    [
      `an import: ${code}`,
      bySetup(new CodedError('TRANSFER_IMPORT_FAILED', 'x', { cause: withCode(code) })),
      Infinity,
    ] as const,
  ]),
  ...['ENOENT', 'EACCES', 'EPERM', 'ENOTDIR', 'ERR_WORKER_INVALID_EXEC_ARGV'].flatMap((code) => [
    [`spawn: ${code}`, byExit({ error: withCode(code) }), 1] as const,
    [`thrown: ${code}`, failureOfStart(withCode(code)).startsToBeSure, 1] as const,
    [
      `as a cause: ${code}`,
      failureOfStart(withCode('X', withCode(code))).startsToBeSure,
      1,
    ] as const,
  ]),
  ...['ERR_ACCESS_DENIED', 'ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].flatMap((code) => [
    [`thrown: ${code}`, failureOfStart(withCode(code)).startsToBeSure, 1] as const,
    [`set-up: ${code}`, bySetup(withCode(code)), 1] as const,
    [`as a cause in a set-up: ${code}`, bySetup(withCode('X', withCode(code))), 1] as const,
    [`not caught in a worker: ${code}`, byExit({ exitCode: 1, error: withCode(code) }), 1] as const,
  ]),
  ...['NATIVE_MISSING', 'CLUSTER_CLOSED', 'CLUSTER_UNSIGNED'].map(
    (code) => [`thrown: ${code}`, failureOfStart(withCode(code)).startsToBeSure, 1] as const,
  ),
  ['a worker whose first module throws', byExit({ exitCode: 1, error: new Error('x') }), 2],
  ['one that does not find its file', byExit({ exitCode: 1, error: withCode('ENOENT') }), 2],
  ['one without a module', byExit({ exitCode: 1, error: withCode('ERR_MODULE_NOT_FOUND') }), 1],
  ['one without its database', byExit({ exitCode: 1, error: withCode('ECONNREFUSED') }), Infinity],
  ['no thread', byExit({ exitCode: 1, error: withCode('ERR_WORKER_INIT_FAILED') }), Infinity],
  ['an unreadable channel', byExit({ signal: 'SIGKILL', error: new Error('x') }), Infinity],
  [
    'a thread without heap by its own limit',
    byExit({ exitCode: 1, error: withCode('ERR_WORKER_OUT_OF_MEMORY') }, { maxHeapMb: 4 }),
    3,
  ],
  [
    'no descriptors',
    failureOfStart(new CodedError('NATIVE_REFUSED', 'x')).startsToBeSure,
    Infinity,
  ],
  ['a set-up without its database', bySetup(withCode('ECONNREFUSED')), Infinity],
  ['a set-up without its file', bySetup(withCode('ENOENT')), Infinity],
  ['a set-up that throws', bySetup(new RangeError('x')), Infinity],
  ['a set-up that throws text', bySetup('x'), Infinity],
  ['a set-up whose fetch failed', bySetup(new TypeError('fetch failed', { cause: 1 })), Infinity],
  ['a mistake in a set-up', bySetup(new TypeError('x is not a function')), 2],
  ['a name that is not there', bySetup(new ReferenceError('x is not defined')), 2],
  ['what cannot be parsed', bySetup(new SyntaxError('x')), 2],
  ['what cannot be read in the worker', bySetup(new CodedError('TRANSFER_CORRUPT', 'x')), 1],
  ['a module that throws', bySetup(new CodedError('TRANSFER_IMPORT_FAILED', 'x')), 2],
  [
    'a module that is not there',
    bySetup(
      new CodedError('TRANSFER_IMPORT_FAILED', 'x', { cause: withCode('ERR_MODULE_NOT_FOUND') }),
    ),
    1,
  ],
];

for (const [what, found, expected] of table) {
  test(`${what}: the pool is sure after ${expected === Infinity ? 'no number of' : expected} starts`, () => {
    assert.equal(found, expected);
  });
}

test('a permission that is missing is named by its flag', () => {
  const denied = (permission: string) =>
    failureOfStart(Object.assign(withCode('ERR_ACCESS_DENIED'), { permission })).error.message;
  assert.match(denied('ChildProcess'), /--allow-child-process/);
  assert.match(denied('WorkerThreads'), /--allow-worker\)/);
});

test('crashes by other signals are of one cause, other ends are not', () => {
  const signatureOf = (given: Partial<WorkerExit>) =>
    startFailure('worker 1', undefined, exit(given), { ...options, maxHeapMb: 4 }).signature;
  const crashes = ['SIGABRT', 'SIGBUS', 'SIGILL', 'SIGSEGV', 'SIGTRAP'].map((signal) =>
    signatureOf({ signal }),
  );
  assert.equal(new Set([...crashes, signatureOf({ exitCode: 139 })]).size, 1);
  const others = [{ exitCode: 1 }, { exitCode: 9 }, { signal: 'SIGKILL' }].map(signatureOf);
  assert.equal(new Set([...others, crashes[0]]).size, 4);
});

test('a start that took too long may be faster the next time', () => {
  const known = { text: 'it was not ready', thrown: undefined };
  const failure = startFailure('worker 1', known, exit({ signal: 'SIGKILL' }), options);
  assert.equal(failure.startsToBeSure, Infinity);
  assert.match(failure.error.message, /it was not ready/);
});

const missingFiles = [
  [['--env-file=no-such.env'], 9, 'no-such.env of --env-file'],
  [['-r', './no-such-file.js'], 1, './no-such-file.js of -r'],
  [['--import', './no-such-file.mjs'], 1, './no-such-file.mjs of --import'],
] as const;
for (const [execArgv, exitCode, named] of missingFiles) {
  test(`the message names ${named}, which is not there`, () => {
    const failure = startFailure('worker 1', undefined, exit({ exitCode }), {
      ...options,
      execArgv,
    });
    const text = `it ended first, with exit code ${exitCode}: ${named} is not there, correct execArgv`;
    assert.equal(failure.error.message, `worker 1 did not start: ${text}`);
    assert.equal(failure.startsToBeSure, 1);
  });
}
