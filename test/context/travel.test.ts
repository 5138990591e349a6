import assert from 'node:assert/strict';
import { basename } from 'node:path';
import * as path from 'node:path';
import { after, test } from 'node:test';
import { Peer } from './harness.js';

const peer = new Peer();
after(() => peer.close());

const topConst = 40;
let topLet = 1;
function helper(value: number): number {
  return value + topConst;
}

test('thin: constants, a changing let, imports and a helper travel', async () => {
  const local = { deep: [1, 2, { three: 3 }] };
  topLet = 2;
  const result = await peer.run(
    (extra: number) => [helper(extra), topLet, local.deep[2], basename('/a/b.txt'), path.join('a', 'b')],
    2,
  );
  assert.deepEqual(result, [42, 2, { three: 3 }, 'b.txt', 'a/b']);
  topLet = 3;
  assert.equal(await peer.run(() => topLet), 3);
});

test('thin: classes', async () => {
  class Point {
    x: number;
    constructor(x: number) {
      this.x = x;
    }
    double() {
      return new Point(this.x * 2);
    }
  }
  const p = new Point(4);
  const result = await peer.run(() => p.double());
  assert.ok(result instanceof Point);
  assert.equal(result.x, 8);
});

test('thin: error', async () => {
  class Custom extends Error {
    info = 5;
  }
  await assert.rejects(
    peer.run(() => {
      throw new Custom('no', { cause: new TypeError('inner') });
    }),
    (error: Error) => {
      assert.ok(error instanceof Custom);
      assert.equal(error.info, 5);
      assert.match(error.stack ?? '', /travel\.test\.js:\d+:\d+[^]*at \[host 1\][^]*travel\.test/);
      return true;
    },
  );
});
