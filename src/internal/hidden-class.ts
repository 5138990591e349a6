// Whether two objects have the same hidden class in V8: the same prototype, the same property names
// with the same attributes, the same extensibility. What was checked for one of them then holds for
// the other. Reading all descriptors of each object instead costs more than writing it
// (bench/cases/objects), and no function of the language compares hidden classes.
//
// V8's test intrinsic does. It can be compiled only while a flag is set, which is reset in the same
// turn. V8 drops bytecode that was not used for a while, and compiling it again then throws: it is
// made again. Where it cannot be made, `isSameClass` is always false and callers check each object.

import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';

type Compare = (one: object, other: object) => boolean;

const never: Compare = () => false;
// Objects in dictionary mode share a class whatever their properties are.
const source = '((one, other) => %HaveSameMap(one, other) && %HasFastProperties(one))';
/** Made again more often than this, it is not worth its cost. */
const mostCompiles = 1000;

let compiles = 0;
let compare: Compare = compile();

function compile(): Compare {
  compiles += 1;
  if (compiles > mostCompiles) return never;
  try {
    return evaluate(); // the user may have set the flag
  } catch {
    // Not set, as nearly always.
  }
  try {
    setFlagsFromString('--allow-natives-syntax');
    return evaluate();
  } catch {
    return never;
  } finally {
    setFlagsFromString('--no-allow-natives-syntax');
  }
}

function evaluate(): Compare {
  const made: unknown = new Script(source).runInThisContext();
  if (!isCompare(made)) return never;
  made(never, never); // compiles what is compiled at the first call
  return made;
}

function isCompare(value: unknown): value is Compare {
  return typeof value === 'function';
}

/** False may mean that it cannot be said. */
export function isSameClass(one: object, other: object): boolean {
  try {
    return compare(one, other);
  } catch {
    compare = compile();
    return compare(one, other);
  }
}
