// The variables of a scope as the inspector shows it. Not here: getting scopes (inspector.ts).

import { descriptorOf } from '../../lib/index.js';

/** Names and values; one before its declaration has run is `undefined`; newer Node versions throw there. */
export function variablesIn(scope: object): (readonly [name: string, value: unknown])[] {
  return Object.getOwnPropertyNames(scope).map((name) => [name, valueIn(scope, name)]);
}

/** `undefined`: there is no such variable, or it has no value yet. */
export function valueIn(scope: object, name: string): unknown {
  try {
    return descriptorOf(scope, name)?.value;
  } catch {
    return undefined;
  }
}
