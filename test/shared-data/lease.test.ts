// The release of a lease whose store fails.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError } from '../../src/errors.js';
import { DataSpace, type Store, type StoredEntry, timedOut } from '../../src/shared-data/index.js';

/** A store in this process. Each of its first deletions, as many as there are errors, throws one of them. */
function storeThatFails(...failures: CodedError[]) {
  const entries = new Map<string, StoredEntry>();
  let last = 0;
  const put = async (key: string, bytes: Uint8Array): Promise<number> => {
    last += 1;
    entries.set(key, { key, bytes, revision: last });
    return last;
  };
  const store: Store = {
    allowsCode: true,
    timeoutMs: 1000,
    owner: 'a test',
    get: async (key) => entries.get(key),
    put,
    putIf: async (key, bytes, revision) =>
      (entries.get(key)?.revision ?? 0) === revision ? await put(key, bytes) : undefined,
    deleteIf: async (key, revision) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return entries.get(key)?.revision === revision && entries.delete(key);
    },
    list: async function* () {},
    watch: async function* () {},
  };
  return { entries, data: new DataSpace(() => store) };
}

test('a release that got no answer is tried again until the lock is free', async () => {
  const failure = timedOut('a deletion', 1000, 'the server is away');
  const { data, entries } = storeThatFails(failure, failure);
  const lease = await data.lock('l').acquire();
  assert.equal(entries.size, 1);
  await lease.release();
  assert.equal(entries.size, 0);
});

test('a release in a cluster that was left resolves at once', async () => {
  const { data, entries } = storeThatFails(
    new CodedError('CLUSTER_CLOSED', 'the cluster was left'),
  );
  const lease = await data.lock('l').acquire();
  await lease.release();
  assert.equal(entries.size, 1);
});
