// Bytes of values that others may have written.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoredValues } from '../../src/shared-data/values.js';

test('bytes that are no value are refused in one sentence', async () => {
  const values = new StoredValues(true);
  const value = values.encode({ text: 'hello', list: [1, 2], fn: () => 1 }, 'the value');
  const wrong = { code: 'TRANSFER_CORRUPT', message: /^the value (is|has) .*: delete it, or use / };
  await assert.rejects(values.decode(Buffer.from('hello'), 'the value'), wrong);
  for (const end of [0, 1, 4, 5, 12, 20]) {
    await assert.rejects(values.decode(value.subarray(0, end), 'the value'), wrong, `${end}`);
  }
});
