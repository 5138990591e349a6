// Instance fields with a name in brackets, which is evaluated again in a worker.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createExporter } from '../../../src/context/index.js';
import { hasCode } from '../../../src/errors.js';
import { runElsewhere } from '../elsewhere.js';

const exporter = createExporter();

test('a key of a field that may be another when it is evaluated again is refused', () => {
  let key = 'a';
  const made = {
    assigned: class {
      [key] = 1;
      seen = () => key;
    },
    called: class {
      // @ts-expect-error: the types require literal names, the language does not
      [String(key)] = 1;
    },
    symbol: class {
      // @ts-expect-error: the types require literal names, the language does not
      [Symbol('own')] = 1;
    },
  };
  key = 'b';
  for (const [title, Class] of Object.entries(made)) {
    assert.throws(
      () => exporter.exportFunction(() => new Class()),
      (error) =>
        hasCode(error, 'TRANSFER_UNREADABLE') &&
        /write this\[.*in the constructor/.test(String(error)),
      title,
    );
  }
  const fixed = 'fixed';
  class Stable {
    [fixed] = 1;
    seen = () => fixed;
    [Symbol.toStringTag] = 'stable';
    ['text'] = 3;
  }
  assert.deepEqual(Object.keys(Object(runElsewhere(() => new Stable(), []))), [
    'fixed',
    'seen',
    'text',
  ]);
});
