// Asks V8 for a collection of young objects alone. Neither Node nor Node-API has a function for it; `gc` of V8
// does it, which a new context gets while a flag is set. The flag is reset in the same turn.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { readonly type: 'minor' }) => void;

/** Tried again more often than this, it does not work here. */
const maxTries = 3;

let tries = 0;
let collect: Collect | undefined;

/** Finds `gc` at the first use: most threads never need it, and a context costs memory. */
function findCollect(): Collect | undefined {
  if (collect !== undefined || tries >= maxTries) return collect;
  tries += 1;
  try {
    collect = gcOfNewContext(); // the user may have set the flag
    if (collect !== undefined) return collect;
    setFlagsFromString('--expose-gc');
    try {
      collect = gcOfNewContext(); // `undefined` when another thread has reset the flag meanwhile
    } finally {
      setFlagsFromString('--no-expose-gc');
    }
  } catch {
    // This runtime has no such flag.
  }
  return collect;
}

function gcOfNewContext(): Collect | undefined {
  const found: Collect | undefined = runInNewContext("typeof gc === 'function' ? gc : undefined");
  return found;
}

/** Collects young objects, which takes about a millisecond. False: this runtime cannot be asked for it. */
export function scavenge(): boolean {
  const collectYoung = findCollect();
  collectYoung?.({ type: 'minor' });
  return collectYoung !== undefined;
}
