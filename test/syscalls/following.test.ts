// The followed processes: those that exist, and no others that reuse their numbers.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { callNative, type NativeTracer, nativeBinding } from '../../src/native.js';
import { ProcessTree } from '../../src/syscalls/process-tree.js';
import { Trace } from '../../src/syscalls/trace.js';
import { killOne, waitFor } from '../support/index.js';
import { cannotCount, notLinux, start } from './tracing.js';

test('raw: a number that is left is not counted any more, and leaving it twice is fine', {
  skip: cannotCount.raw,
}, () => {
  const binding = nativeBinding();
  assert.ok(binding !== undefined);
  const tracer = callNative(() => binding.NativeTracer.start('raw', [process.pid], []));
  const count = () =>
    tracer
      .read()
      .filter(({ tid }) => tid === process.pid)
      .flatMap(({ calls }) => calls)
      .reduce((sum, call) => sum + call.count, 0);
  for (let i = 0; i < 1000; i += 1) statSync('/');
  assert.ok(count() >= 1000);
  tracer.unfollow(process.pid);
  tracer.unfollow(process.pid);
  const before = count();
  for (let i = 0; i < 1000; i += 1) statSync('/');
  assert.ok(count() - before < 100);
  tracer.close();
});

for (const method of ['raw', 'ebpf'] as const) {
  test(`${method}: starts while signals arrive all the time`, {
    skip: cannotCount[method],
  }, async (t) => {
    const binding = nativeBinding();
    assert.ok(binding !== undefined);
    const ignore = () => {};
    process.on('SIGWINCH', ignore);
    t.after(() => process.off('SIGWINCH', ignore));
    // Signals arrive during the starts alone: an event loop that gets too many does not go on.
    const [goes, sent] = [0, 1];
    const state = new Int32Array(new SharedArrayBuffer(8));
    const sender = new Worker(
      `const { workerData: state } = require('node:worker_threads');
      Atomics.wait(state, ${goes}, 0);
      while (Atomics.wait(state, ${goes}, 1, 0.1) === 'timed-out') {
        process.kill(process.pid, 'SIGWINCH');
        Atomics.add(state, ${sent}, 1);
      }`,
      { eval: true, workerData: state },
    );
    Atomics.store(state, goes, 1);
    Atomics.notify(state, goes);
    while (Atomics.load(state, sent) === 0);
    try {
      for (let i = 0; i < 5; i += 1) {
        callNative(() => binding.NativeTracer.start(method, [process.pid], [])).close();
      }
    } finally {
      Atomics.store(state, goes, 2);
      Atomics.notify(state, goes);
      await once(sender, 'exit');
    }
  });
}

/** Counts nothing; has room for a limited number. */
class FullTracer implements NativeTracer {
  readonly followed = new Set<number>();
  readonly left = new Set<number>();
  readonly #most: number;
  constructor(most: number) {
    this.#most = most;
  }
  follow(pid: number): void {
    if (this.followed.size === this.#most) throw new Error('E2BIG');
    this.followed.add(pid);
  }
  unfollow(pid: number): void {
    this.left.add(pid);
  }
  read() {
    return [];
  }
  takeOwnTime(): void {}
  ownTimeNs(): number {
    return 0;
  }
  close(): void {}
}

test('a report mentions processes that the kernel has no room to follow, and ended ones are released', {
  skip: notLinux,
}, async (t) => {
  const shell = 'sleep 100 & sleep 100 & echo here; wait';
  const { pid } = await start(t, ['sh', '-c', shell]);
  const tree = new ProcessTree(pid);
  const tracer = new FullTracer(1);
  // Scanning only now simulates children that were started after the first scan.
  const trace = new Trace(pid, {}, tree, { method: 'raw', tracer, missing: [] });
  t.after(() => {
    for (const each of trace.running) process.kill(each, 'SIGKILL');
  });
  const children = () => trace.pids.filter((each) => each !== pid);
  assert.equal(trace.pids.length, 3);
  killOne(children()[0], 'SIGKILL');
  await waitFor(() => tracer.left.size === 1, 20_000);
  assert.ok(children().includes([...tracer.left][0] ?? 0));
  const { notes } = trace.stop();
  assert.match(notes.join(), /room for 4,096 processes at once: the calls of 2 are not counted/);
});

test('a program that starts others while a trace of it begins is followed with all of them', {
  skip: notLinux,
}, async (t) => {
  const { pid } = await start(t, ['sh', '-c', `${'sleep 100 & '.repeat(3)} echo here; wait`]);
  const tracer = new FullTracer(100);
  const tree = new ProcessTree(pid);
  const trace = new Trace(pid, {}, tree, { method: 'ebpf', tracer, missing: [] });
  t.after(() => {
    for (const each of trace.running) process.kill(each, 'SIGKILL');
  });
  assert.equal(tracer.followed.size, 4);
  trace.stop();
});
