// The name that a function expression around a function gives itself, as in `(function outer() { … })`. V8 does
// not list it among the variables of a scope, so it is read natively.
// Not here: all other variables (inspector.ts).

import type { Binding } from '../text/scope.js';
import type { AnyFunction } from '../types.js';
import { type Path, transferError } from '../values/refuse.js';
import { readOnce } from './closure-reader.js';

/** True: the name is that of the function expression in whose scope it is. */
export function isOwnName({ kind, start, scope: { node } }: Binding): boolean {
  return kind === 'function' && node.type === 'FunctionExpression' && node.start === start;
}

/** The function around `fn` that has this name. Throws `TRANSFER_UNREADABLE` where it cannot be read. */
export function readOwnName(fn: AnyFunction, name: string, path: Path): unknown {
  const values = readOnce(fn, [name]);
  if (values !== undefined) return values[0];
  throw transferError(
    'TRANSFER_UNREADABLE',
    path,
    `it uses the name \`${name}\` of the function expression around it, which cannot be read here: put the ` +
      'function into a const and use that',
  );
}
