// Variables and collections by a name, for code that shares no closure: the loops of a server, units that are deployed
// one by one. The names are a sorted map, to which one word of the memory leads.

import { CodedError, hasCode } from '../errors.js';
import { invalid, notFunction } from '../lib/index.js';
import { atomically } from './atomically.js';
import { collectionOf } from './collection.js';
import { type TSortedMap, tsortedMap } from './collections/sorted-map.js';
import { free, type Shared } from './free.js';
import {
  KIND_COUNTER,
  KIND_LIST,
  KIND_MAP,
  KIND_QUEUE,
  KIND_SORTED_MAP,
  KIND_TVAR,
} from './kinds.js';
import { type Known, type StmKind, setNames } from './stats.js';
import {
  holdMemory,
  insideOf,
  runningAttempt,
  sharedName,
  threadState,
  typed,
  variableAt,
} from './tvar.js';

/**
 * Returns the variable or collection that has this name in all processes of the program. Where there is none, `make`
 * makes it, in a transaction; so it does for one that was freed. An existing one may be of another kind. Throws
 * `STM_SIDE_EFFECT` in a transaction, `OPTION_INVALID`, `STM_VALUE_TOO_LARGE` for a name of more than 512 characters,
 * and what `tvar` throws.
 */
export function named<T extends Shared>(name: string, make: () => T): T {
  if (typeof name !== 'string' || name === '') throw invalid('the name', name, 'a text');
  if (typeof make !== 'function') throw notFunction('make', make);
  if (runningAttempt() !== undefined) {
    throw new CodedError(
      'STM_SIDE_EFFECT',
      'named() was called in a transaction: call it before, and use what it returns there',
    );
  }
  const names = namesOfAll();
  return atomically(() => {
    const known = names.get(name);
    if (known !== undefined && isAlive(known)) return typed(known);
    const made = make();
    if (sharedName(Object(made)) === undefined) {
      throw invalid('what make() returned', made, 'a TVar or a collection');
    }
    names.set(name, made);
    return made;
  });
}

function isAlive(shared: Shared): boolean {
  const name = sharedName(shared);
  try {
    if (name !== undefined) insideOf('named()').checkHeader(name.at, name.header);
    return true;
  } catch (error) {
    if (hasCode(error, 'STM_GONE')) return false;
    throw error;
  }
}

const kinds: ReadonlyMap<number, StmKind> = new Map([
  [KIND_TVAR, 'TVar'],
  [KIND_MAP, 'TMap'],
  [KIND_SORTED_MAP, 'TSortedMap'],
  [KIND_LIST, 'TList'],
  [KIND_QUEUE, 'TQueue'],
  [KIND_COUNTER, 'TCounter'],
]);

/** Reading more names would hold up the event loop. */
const maxNamesRead = 1000;

/** Everything that has a name, for statistics: nothing where it cannot be read now. */
function knownByIndex(): Map<number, Known> {
  const found = new Map<number, Known>();
  const { space } = threadState();
  if (runningAttempt() !== undefined || Atomics.load(space.words, space.at.root) === 0) {
    return found;
  }
  try {
    for (const [name, shared] of openNames().entries({ limit: maxNamesRead })) {
      const stand = sharedName(shared);
      const kind = kinds.get(stand?.kind ?? 0);
      // The place of a freed one may have another object.
      const isThere = stand !== undefined && space.words[stand.at - 1] === stand.header;
      if (isThere && kind !== undefined) found.set(stand.at, { name, kind });
    }
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
  }
  return found;
}

setNames(knownByIndex);

let isHeld = false;

/** The map of all names, made at the first use in the program. */
function namesOfAll(): TSortedMap<string, Shared> {
  // Names last as long as the program, whether or not this thread has a handle now.
  if (!isHeld) holdMemory();
  isHeld = true;
  const { space } = threadState();
  const { root } = space.at;
  if (Atomics.load(space.words, root) === 0) {
    const made: TSortedMap<string, Shared> = tsortedMap();
    const at = sharedName(made)?.at ?? 0;
    if (Atomics.compareExchange(space.words, root, 0, at) === 0) return made;
    free(made);
  }
  return openNames();
}

/** The same where it is made already. */
function openNames(): TSortedMap<string, Shared> {
  const { space } = threadState();
  const at = Atomics.load(space.words, space.at.root);
  const first = variableAt({ at, header: space.words[at - 1] ?? 0 });
  return typed(collectionOf(KIND_SORTED_MAP, first));
}
