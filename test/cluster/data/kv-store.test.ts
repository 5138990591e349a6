// Watches of the store in NATS KV, over a link whose calls are repeated.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KvStore } from '../../../src/cluster/data/kv-store.js';
import { defer } from '../../../src/lib/index.js';

interface Call {
  work(bucket: unknown): Promise<unknown>;
}

test('a watch that an abandoned attempt opens is stopped', async () => {
  const stopped: number[] = [];
  const slow = defer<void>();
  let opened = 0;
  const bucket = {
    status: async () => ({ streamInfo: { created: 'once', state: { messages: 1, last_seq: 1 } } }),
    watch: async () => {
      opened += 1;
      const at = opened;
      if (at === 1) await slow.promise;
      const entry = { key: 'k', revision: 1, operation: 'PUT', value: Buffer.from('v') };
      return {
        stop: () => stopped.push(at),
        [Symbol.asyncIterator]: async function* () {
          yield entry;
        },
      };
    },
  };
  const link = {
    watchReconnects: () => () => {},
    // The connection is lost during the first attempt.
    call: async ({ work }: Call) => {
      const first = work(bucket);
      while (opened === 0) await new Promise(setImmediate);
      const second = await work(bucket);
      slow.resolve();
      await first;
      return second;
    },
  };
  const store = new KvStore({
    link: Promise.resolve(Object(link)),
    cluster: 'c',
    hasSecret: false,
    name: { kind: 'locks' },
    timeoutMs: 1000,
  });
  for await (const { key } of store.watch(undefined, undefined)) {
    assert.equal(key, 'k');
    assert.deepEqual(stopped, [1]);
    break;
  }
  assert.deepEqual(stopped, [1, 2]);
});
