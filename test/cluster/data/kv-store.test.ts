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

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await Promise.resolve();
}

/** Returns a store over a link whose bucket is this one. */
function storeOf(bucket: object, watchReconnects: (listener: () => void) => () => void): KvStore {
  const link = { watchReconnects, call: ({ work }: Call) => work(bucket) };
  return new KvStore({
    link: Promise.resolve(Object(link)),
    cluster: 'c',
    hasSecret: false,
    name: { kind: 'locks' },
    timeoutMs: 1000,
  });
}

test('a watch that was opened while the connection was lost is opened again', async () => {
  let opened = 0;
  const stopped: number[] = [];
  let onReconnect = (): void => {};
  const bucket = {
    status: async () => ({ streamInfo: { created: 'once', state: { messages: 1, last_seq: 1 } } }),
    watch: async () => {
      opened += 1;
      const at = opened;
      const end = defer<void>();
      if (at === 1) onReconnect(); // its consumer ended with the old connection: no entry comes
      return {
        stop: () => {
          stopped.push(at);
          end.resolve();
        },
        [Symbol.asyncIterator]: async function* () {
          if (at === 1) await end.promise;
          else yield { key: 'k', revision: 1, operation: 'PUT', value: Buffer.from('v') };
        },
      };
    },
  };
  const store = storeOf(bucket, (listener) => {
    onReconnect = listener;
    return () => {};
  });
  for await (const { key } of store.watch(undefined, undefined)) {
    assert.deepEqual({ key, stopped }, { key: 'k', stopped: [1] });
    break;
  }
  assert.deepEqual(stopped, [1, 2]);
});

test('a slow reader of a list has each entry from one watch: another misses replaced ones', async () => {
  const value = Buffer.alloc(2 ** 20);
  let opened = 0;
  const bucket = {
    status: async () => ({
      streamInfo: { created: 'once', state: { messages: 20, last_seq: 20 } },
    }),
    watch: async ({ resumeFromRevision = 1 }) => {
      opened += 1;
      return {
        stop: () => {},
        [Symbol.asyncIterator]: async function* () {
          for (let revision = resumeFromRevision; revision <= 20; revision += 1)
            yield { key: `k${revision}`, revision, operation: 'PUT', value, delta: 20 - revision };
        },
      };
    },
  };
  const revisions: number[] = [];
  for await (const { revision } of storeOf(bucket, () => () => {}).list()) {
    revisions.push(revision);
    await turns(1000);
  }
  assert.deepEqual(
    revisions,
    Array.from({ length: 20 }, (_, at) => at + 1),
  );
  assert.equal(opened, 1);
});

test('a slow reader of a watch holds a bounded amount, and goes on where it was', async () => {
  const value = Buffer.alloc(2 ** 20);
  const resumed: number[] = [];
  let sent = 0;
  let onReconnect = (): void => {};
  const bucket = {
    status: async () => ({ streamInfo: { created: 'once', state: { messages: 1, last_seq: 0 } } }),
    watch: async ({ resumeFromRevision = 1 }) => {
      resumed.push(resumeFromRevision);
      let left = Infinity;
      return {
        stop: () => {
          left = Math.min(left, 5); // what arrived before still comes, as from the client
        },
        [Symbol.asyncIterator]: async function* () {
          for (let revision = resumeFromRevision; left > 0; revision += 1, left -= 1) {
            sent += 1;
            yield { key: 'k', revision, operation: 'PUT', value };
          }
        },
      };
    },
  };
  const store = storeOf(bucket, (listener) => {
    onReconnect = listener;
    return () => {};
  });
  let last = 0;
  for await (const { revision } of store.watch(undefined, undefined)) {
    assert.equal(revision, last + 1);
    last = revision;
    if (last === 1) {
      await turns(1000);
      assert.ok(sent > 1 && sent < 20, `${sent} are held`);
    } else if (resumed.length === 2 && sent > last + 2) {
      onReconnect(); // while some are unread
      await turns(100);
    } else if (last === 100) break;
  }
  assert.ok(resumed.length > 2);
  assert.ok(sent < 300);
});
