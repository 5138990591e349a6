// An error is the same on the other side as where it was made. It is thrown by a task, returned, passed as an
// argument and captured, in processes and in threads.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import util from 'node:util';
import { isNativeError } from 'node:util/types';
import { Pool } from '../../../src/public.js';
import { nodeErrors } from './node-errors.js';
import { packageErrors } from './package-errors.js';

const builtinErrors = [
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  AggregateError,
  DOMException,
  Reflect.get(Reflect.get(globalThis, 'WebAssembly'), 'CompileError'),
];

/** The first line as it is with frames: errors without frames have brackets around it. */
function firstLine(shown: string): string {
  return (shown.split('\n')[0] ?? '').replace(/^(?:<ref \*1> )?\[(.*)\](?: \{)?$/, '$1');
}

/** The visible state of an error without its frames. */
export function describeError(error: unknown, depth = 0): unknown {
  if (typeof error !== 'object' || error === null) return error;
  const keys: Record<string, unknown> = {};
  for (const key of Reflect.ownKeys(error)) {
    if (key === 'pid' || String(key).startsWith('Symbol(kEnhanceStack')) continue;
    const own = Object.getOwnPropertyDescriptor(error, key);
    const value: unknown = Reflect.get(error, key);
    const isInner = isNativeError(value) && depth < 3;
    const shown =
      key === 'stack' && typeof value === 'string'
        ? value.split('\n    at ')[0]
        : util.inspect(value).replace(/\n\s+(?:at |\.\.\. ).*/g, '');
    keys[String(key)] = [
      own?.enumerable === true ? 'enumerable' : '',
      // Newer versions of Node have an accessor for a stack.
      key === 'stack' ? '' : [own?.writable, own?.configurable, own?.get !== undefined].join(),
      isInner ? describeError(value, depth + 1) : shown,
    ];
  }
  return {
    tag: Object.prototype.toString.call(error),
    isNative: isNativeError(error),
    constructor: Reflect.get(Object(Reflect.get(error, 'constructor')), 'name'),
    instanceOf: builtinErrors.filter((each) => error instanceof each).map(({ name }) => name),
    name: util.inspect(Reflect.get(error, 'name')),
    message: util.inspect(Reflect.get(error, 'message')),
    code: util.inspect(Reflect.get(error, 'code')),
    text: 'toString' in error ? String(error) : '',
    isOpen: Object.isExtensible(error),
    keys,
    inspected: firstLine(util.inspect(error)),
  };
}

async function thrownBy(body: () => unknown): Promise<unknown> {
  try {
    await body();
  } catch (error) {
    return error;
  }
  return assert.fail('it threw nothing');
}

for (const worker of ['process', 'thread'] as const) {
  const pool = new Pool({ worker, size: 1 });
  after(() => pool.close());

  for (const [title, provoke] of Object.entries({ ...nodeErrors, ...packageErrors })) {
    test(`${worker}: ${title} is the same error on the other side`, async () => {
      const error = await thrownBy(provoke);
      const expected = describeError(error);
      assert.deepEqual(describeError(await thrownBy(() => pool.run(provoke))), expected, 'thrown');
      if (title === 'private members') return; // refused as a value
      const [ofArgument, ofCaptured, made, returned] = await pool.run(async (argument: unknown) => {
        const result = await Promise.resolve()
          .then(provoke)
          .catch((caught: unknown) => ({ caught }));
        return [describeError(argument), describeError(error), Object(result).caught, argument];
      }, error);
      assert.deepEqual(ofArgument, expected, 'argument');
      assert.deepEqual(ofCaptured, expected, 'captured');
      assert.deepEqual(describeError(made), expected, 'result');
      assert.deepEqual(describeError(returned), expected, 'there and back');
    });
  }
}
