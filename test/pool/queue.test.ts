import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TaskQueue } from '../../src/pool/queue.js';

/** What the queue should do, done slowly: one sorted list. */
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

test('a queue gives, removes and takes back tasks as one sorted list would', () => {
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
          assert.equal(
            queue.remove(each.task, each.priority),
            naive.remove(each.task, each.priority),
          );
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
  assert.equal(queue.remove(4500, 0), true);
  assert.equal(queue.remove(3999, 0), false);
  const rest = Array.from({ length: queue.length }, () => queue.shift());
  const expected = Array.from({ length: 1000 }, (_, index) => 4000 + index);
  assert.deepEqual(rest, [-2, -1, ...expected.filter((task) => task !== 4500)]);
  assert.equal(queue.shift(), undefined);
});
