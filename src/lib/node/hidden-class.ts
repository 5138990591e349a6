// Compares the hidden classes of two objects in V8: the same prototype, the same property names
// with the same attributes, the same extensibility. What was checked for one of them then holds for
// the other. Reading all descriptors of each object instead costs more than writing it
// (bench/cases/objects), and no function of the language compares hidden classes.
//
// V8's test intrinsics do, and they list the private names of an object, which the language shows to
// code inside of their class alone. They can be compiled only while a flag is set, which is reset in the
// same turn. V8 drops bytecode that was not used for a while, and compiling it again then throws: it is
// made again. Where it cannot be made, `isSameClass` is always false and callers check each object.

import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';

type Compare = (one: object, other: object) => boolean;
type List = (value: object) => readonly unknown[];

const never: Compare = () => false;
const nothing: List = () => [];
// Objects in dictionary mode share a class whatever their properties are.
const compareSource = '((one, other) => %HaveSameMap(one, other) && %HasFastProperties(one))';
/** The number of the filter for private names, in V8 of Node 22 and later, and of Node 20. */
const filters = [32, 64];
/** Made again more often than this, it is not worth its cost. */
const maxCompiles = 1000;

class Probe {
  readonly #hidden = 1;

  get count(): number {
    return this.#hidden;
  }
}

let compiles = 0;
let compare = compiled(makeCompare, never);
/** Made at the first use: most processes never need it. */
let list: List | undefined;

function compiled<T>(make: () => T, otherwise: T): T {
  compiles += 1;
  if (compiles > maxCompiles) return otherwise;
  try {
    return make(); // the user may have set the flag
  } catch {
    // Not set, as nearly always.
  }
  try {
    setFlagsFromString('--allow-natives-syntax');
    return make();
  } catch {
    return otherwise;
  } finally {
    setFlagsFromString('--no-allow-natives-syntax');
  }
}

function makeCompare(): Compare {
  const made = evaluated<Compare>(compareSource);
  made(never, never); // compiles what is compiled at the first call
  return made;
}

function makeList(): List {
  const probe = new Probe();
  for (const filter of filters) {
    const made = evaluated<List>(`((value) => %GetOwnPropertyKeys(value, ${filter}))`);
    if (made(probe).length === probe.count && made(made).length === 0) return made;
  }
  return nothing;
}

function evaluated<T>(source: string): T {
  const made: T = new Script(source).runInThisContext();
  return made;
}

/** False may mean that it cannot be said. */
export function isSameClass(one: object, other: object): boolean {
  try {
    return compare(one, other);
  } catch {
    compare = compiled(makeCompare, never);
    return compare(one, other);
  }
}

/**
 * True: `value`, which is no Proxy, has `#` members of some class, whatever its prototype is. False may
 * mean that it cannot be said.
 */
export function hasPrivateMembers(value: object): boolean {
  return countOfPrivates(value) > 0;
}

/** True: it has more of them than `like`, an object of the same class of Node's. */
export function hasMorePrivates(value: object, like: () => object): boolean {
  const count = countOfPrivates(value);
  return count > 0 && count > countOfPrivates(like());
}

/** Fields, and one for all methods of a class. */
function countOfPrivates(value: object): number {
  try {
    list ??= compiled(makeList, nothing);
    return list(value).length;
  } catch {
    list = compiled(makeList, nothing);
    return list(value).length;
  }
}
