// The election of the loop that runs the functions of `onlyOne`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Leadership } from '../../../src/serve/supervisor/leadership.js';

class TestProcess {
  state = 'ready';
  readonly elected: (number | undefined)[] = [];
  readonly generation: number;

  constructor(generation = 0) {
    this.generation = generation;
  }

  post({ loop, body }: { loop?: number | undefined; body: { type: string } }): void {
    assert.equal(body.type, 'elected');
    this.elected.push(loop);
  }
}

test('the first loop of a process that serves is elected, once', () => {
  const leadership = new Leadership();
  const [first, other] = [new TestProcess(), new TestProcess()];
  leadership.stand(first, 1);
  leadership.stand(first, 1);
  leadership.stand(first, 2);
  leadership.stand(other, 1);
  leadership.elect();
  assert.deepEqual([first.elected, other.elected], [[1], []]);
});

for (const [how, end] of [
  ['has resigned', 1],
  ['has ended with its process', undefined],
] as const) {
  test(`when the elected loop ${how} another one is elected, and none before`, () => {
    const leadership = new Leadership();
    const [first, other] = [new TestProcess(), new TestProcess()];
    leadership.stand(first, 1);
    leadership.stand(other, 4);
    first.state = 'draining';
    leadership.elect();
    assert.deepEqual(other.elected, []);
    leadership.leave(first, end);
    leadership.leave(first, undefined);
    assert.deepEqual([first.elected, other.elected], [[1], [4]]);
  });
}

test('a loop is elected only when its process serves', () => {
  const leadership = new Leadership();
  const starting = new TestProcess();
  starting.state = 'starting';
  leadership.stand(starting, 1);
  assert.deepEqual(starting.elected, []);
  starting.state = 'ready';
  leadership.elect();
  assert.deepEqual(starting.elected, [1]);
});

test('a loop that was not elected may end, and is not elected later', () => {
  const leadership = new Leadership();
  const [first, other] = [new TestProcess(), new TestProcess()];
  leadership.stand(first, 1);
  leadership.stand(other, 2);
  leadership.leave(other, 2);
  leadership.leave(first, 1);
  assert.deepEqual([first.elected, other.elected], [[1], []]);
});

test('a loop of the newest generation comes first', () => {
  const leadership = new Leadership();
  const [old, other, fresh] = [new TestProcess(), new TestProcess(), new TestProcess(1)];
  leadership.stand(old, 1);
  leadership.stand(other, 2);
  leadership.stand(fresh, 3);
  leadership.leave(old, undefined);
  assert.deepEqual([other.elected, fresh.elected], [[], [3]]);
});
