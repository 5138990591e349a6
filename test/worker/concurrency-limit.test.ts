import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConcurrencyLimit } from '../../src/worker/both/concurrency-limit.js';

test('the limit holds; waiting calls begin in the order in which they came', () => {
  const limit = new ConcurrencyLimit(2);
  const begun: string[] = [];
  const wait = (name: string) =>
    limit.wait(() => {
      begun.push(name);
      limit.acquire();
    });
  limit.acquire();
  assert.ok(limit.hasRoom);
  limit.acquire();
  assert.ok(!limit.hasRoom);
  for (const name of ['first', 'second', 'third']) wait(name);
  limit.release();
  assert.deepEqual(begun, ['first']);
  limit.release();
  limit.release();
  assert.deepEqual(begun, ['first', 'second', 'third']);
});

test('a call that comes while others wait does not go before them', () => {
  const limit = new ConcurrencyLimit(1);
  limit.acquire();
  let hadRoom: boolean | undefined;
  limit.wait(() => {
    hadRoom = limit.hasRoom; // another one waits still
  });
  limit.wait(() => limit.acquire());
  limit.release();
  assert.equal(hadRoom, false);
  assert.ok(!limit.hasRoom);
  limit.release();
  assert.ok(limit.hasRoom);
});

test('tasks that end in their call let all that wait begin', () => {
  const limit = new ConcurrencyLimit(1);
  limit.acquire();
  let begun = 0;
  for (let count = 0; count < 3; count += 1) {
    limit.wait(() => {
      begun += 1;
    });
  }
  limit.release();
  assert.equal(begun, 3);
  assert.ok(limit.hasRoom);
});
