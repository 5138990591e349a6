import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { TaskQueue } from '../../src/pool/queue.js';
import { waitFor } from '../support/index.js';

/** The expected queue, done slowly: one sorted list. */
class NaiveQueue {
  #entries: { task: number; priority: number }[] = [];

  get tasks(): number[] {
    return this.#entries.map((entry) => entry.task);
  }

  push(task: number, priority: number): void {
    const behind = this.#entries.findIndex((entry) => entry.priority < priority);
    this.#entries.splice(behind < 0 ? this.#entries.length : behind, 0, { task, priority });
  }

  unshift(tasks: readonly number[], priority: number): void {
    const behind = this.#entries.findIndex((entry) => entry.priority <= priority);
    const added = tasks.map((task) => ({ task, priority }));
    this.#entries.splice(behind < 0 ? this.#entries.length : behind, 0, ...added);
  }

  shift(): number | undefined {
    return this.#entries.shift()?.task;
  }

  remove(task: number, priority: number): boolean {
    const at = this.#entries.findIndex(
      (entry) => entry.task === task && entry.priority === priority,
    );
    if (at >= 0) this.#entries.splice(at, 1);
    return at >= 0;
  }
}

const priority = fc.integer({ min: -2, max: 2 });
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('push' as const), priority }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('shift' as const), priority }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('unshift' as const),
      priority,
      count: fc.integer({ min: 0, max: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('remove' as const), priority, task: fc.nat(60) }),
  },
);

test('a queue gives, removes and re-inserts tasks as one sorted list would', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const queue = new TaskQueue<number>();
      const naive = new NaiveQueue();
      let last = 0;
      for (const each of steps) {
        if (each.do === 'push') {
          last += 1;
          queue.push(last, each.priority);
          naive.push(last, each.priority);
        } else if (each.do === 'unshift') {
          const tasks = Array.from({ length: each.count }, () => {
            last += 1;
            return last;
          });
          queue.unshift(tasks, each.priority);
          naive.unshift(tasks, each.priority);
        } else if (each.do === 'remove') {
          if (naive.remove(each.task, each.priority)) queue.remove(each.task, each.priority);
        } else {
          assert.equal(queue.peek(), naive.tasks[0]);
          assert.equal(queue.shift(), naive.shift());
        }
        assert.equal(queue.length, naive.tasks.length);
      }
      const rest = Array.from({ length: queue.length }, () => queue.shift());
      assert.deepEqual(rest, naive.tasks);
    }),
  );
});

test('a queue that was long keeps its order while its front is forgotten', () => {
  const queue = new TaskQueue<number>();
  for (let task = 0; task < 5000; task += 1) queue.push(task, 0);
  for (let task = 0; task < 4000; task += 1) assert.equal(queue.shift(), task);
  queue.unshift([-2, -1], 0);
  queue.remove(4500, 0);
  const rest = Array.from({ length: queue.length }, () => queue.shift());
  const expected = Array.from({ length: 1000 }, (_, index) => 4000 + index);
  assert.deepEqual(rest, [-2, -1, ...expected.filter((task) => task !== 4500)]);
  assert.equal(queue.shift(), undefined);
});

test('a long queue whose tasks are taken out anywhere keeps the order of the others', () => {
  const task = fc.nat({ max: 2_999 });
  fc.assert(
    fc.property(fc.uniqueArray(task, { minLength: 0, maxLength: 2_900 }), task, (gone, shifted) => {
      const queue = new TaskQueue<number>();
      for (let each = 0; each < 3_000; each += 1) queue.push(each, 0);
      const front = gone.filter((each) => each >= shifted);
      for (let each = 0; each < shifted; each += 1) queue.shift();
      queue.unshift([-3, -2, -1], 0);
      for (const each of front) queue.remove(each, 0);
      const left = new Set(front);
      const expected = [-3, -2, -1];
      for (let each = shifted; each < 3_000; each += 1) if (!left.has(each)) expected.push(each);
      assert.equal(queue.length, expected.length);
      assert.deepEqual(
        expected.map(() => queue.shift()),
        expected,
      );
      assert.equal(queue.shift(), undefined);
    }),
    { numRuns: 20 },
  );
});

test('a queue that is emptied by taking out is as a new one', () => {
  const queue = new TaskQueue<number>();
  for (let each = 1; each <= 5_000; each += 1) queue.push(each, 0);
  for (let each = 5_000; each >= 1; each -= 1) queue.remove(each, 0);
  assert.equal(queue.length, 0);
  assert.equal(queue.peek(), undefined);
  queue.unshift([7], 0);
  queue.push(8, 0);
  assert.deepEqual([queue.shift(), queue.shift(), queue.shift()], [7, 8, undefined]);
});

test('what was taken out is not kept once all before it have left', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const queue = new TaskQueue<object>();
  const taken = ((): WeakRef<object> => {
    const last = {};
    queue.push({}, 0);
    queue.push(last, 0);
    queue.remove(last, 0);
    queue.shift();
    return new WeakRef(last);
  })();
  await waitFor(() => {
    collect();
    return taken.deref() === undefined;
  }, 5_000);
  assert.equal(queue.length, 0);
});
