// Makes the specials of a payload that need no others: built-ins, errors, buffers, tasks.
// Not here: functions and classes, and specials that hold others (decode.ts).

import { isNativeError } from 'node:util/types';
import { defineOwn, withoutStack } from '../../lib/index.js';
import { unmarked } from '../modules/marks.js';
import { listAt, numberAt, special, stringAt } from '../protocol.js';
import { followPath } from '../values/intrinsics.js';
import { infoAccessor, makeNodeErrorPrototype } from '../values/node-errors.js';
import { makePlatform } from '../values/platform.js';
import { task } from '../values/task.js';
import { corrupt } from '../wire.js';

/** Throws `TRANSFER_CORRUPT` for a special of any other kind. A list has at most `maxElements`. */
export function makePlain(entry: readonly unknown[], maxElements: number): unknown {
  switch (entry[0]) {
    case special.builtin:
      return builtin(entry);
    case special.registeredSymbol:
      return Symbol.for(stringAt(entry, 1));
    case special.error:
      return makeError(entry);
    case special.url:
      return new URL(stringAt(entry, 1));
    case special.searchParams:
      return new URLSearchParams(stringAt(entry, 1));
    case special.buffer:
      return bufferOf(entry[1]);
    case special.platform:
      return makePlatform(numberAt(entry, 1), listAt(entry, 2, maxElements));
    case special.arguments:
      return noArguments();
    case special.nodeError:
      return makeNodeErrorPrototype({
        layers: listAt(entry, 1, maxElements).map(layerPart),
        path: listAt(entry, 2, maxElements).map(String),
      });
    case special.infoAccessor:
      return infoAccessor(entry[1] === 1, stringAt(entry, 2), listAt(entry, 3, maxElements));
    case special.task:
      return makeTask(stringAt(entry, 1), stringAt(entry, 2));
    default:
      throw corrupt('a special of no known kind');
  }
}

function builtin(entry: readonly unknown[]): unknown {
  const path = entry.slice(1).map((key): string | symbol => {
    if (typeof key === 'string') return key;
    const name: unknown = Array.isArray(key) ? key[0] : undefined;
    const symbol: unknown = typeof name === 'string' ? Reflect.get(Symbol, name) : undefined;
    if (typeof symbol !== 'symbol') throw corrupt('a built-in has a bad name');
    return symbol;
  });
  return followPath(path);
}

function makeError(entry: readonly unknown[]): Error {
  const Base: unknown = Reflect.get(globalThis, stringAt(entry, 1));
  if (typeof Base !== 'function') throw corrupt('an error has no class');
  const made: unknown = withoutStack(() =>
    Reflect.construct(Base, stringAt(entry, 1) === 'AggregateError' ? [[]] : []),
  );
  if (!isNativeError(made)) throw corrupt('an error has no class');
  for (const key of Reflect.ownKeys(made)) Reflect.deleteProperty(made, key);
  const stack = entry[2];
  if (stack === undefined) return made;
  defineOwn(made, 'stack', {
    value: unmarked(String(stack)),
    writable: true,
    enumerable: false,
    configurable: true,
  });
  return made;
}

function layerPart(part: unknown): string | number {
  if (typeof part !== 'string' && typeof part !== 'number') throw corrupt('a class has a bad part');
  return part;
}

function bufferOf(view: unknown): ArrayBufferLike {
  if (!ArrayBuffer.isView(view)) throw corrupt('a buffer came without a view');
  return view.buffer;
}

/** An `arguments` object of a strict function, without the length that it will get. */
function noArguments(): object {
  // biome-ignore lint/complexity/noArguments: the object itself is wanted
  const made = arguments;
  return made;
}

function makeTask(url: string, exportName: string): unknown {
  if (!URL.canParse(url) || exportName === '') throw corrupt('a task has no module or no export');
  return task(url, exportName);
}
