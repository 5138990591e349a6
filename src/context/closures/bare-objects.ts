// Runs a body while `Object.prototype` has only the members of the language. Node's inspector session reads
// its messages as ordinary objects. With an `error` or `id` that a program has put on the prototype, each
// answer is a failure and each event has no known kind. The session writes JSON, so a `toJSON` of arrays is
// hidden too.
// Not here: our own code, which reads own properties only.

import vm from 'node:vm';
import { defineOwn, descriptorOf, type OwnDescriptor, standardKeys } from '../../lib/index.js';

/** The prototype of Node's own code, which differs from ours in a context of node:vm. */
const prototypeOfNode: object = Object(vm.runInThisContext('Object.prototype'));

type Hidden = [holder: object, key: string | symbol, descriptor: OwnDescriptor];

/** `body` must return at once, and call no code of the program. Members that cannot be deleted stay. */
export function withBareObjects<T>(body: () => T): T {
  const keys = Reflect.ownKeys(prototypeOfNode);
  const hasJson = Object.hasOwn(Array.prototype, 'toJSON');
  if (keys.length === standardKeys.size && !hasJson) return body();
  const hidden: Hidden[] = [];
  const hide = (holder: object, key: string | symbol): void => {
    const descriptor = descriptorOf(holder, key);
    if (descriptor !== undefined && Reflect.deleteProperty(holder, key)) {
      hidden.push([holder, key, descriptor]);
    }
  };
  for (const key of keys) if (!standardKeys.has(key)) hide(prototypeOfNode, key);
  if (hasJson) hide(Array.prototype, 'toJSON');
  try {
    return body();
  } finally {
    for (const [holder, key, descriptor] of hidden) defineOwn(holder, key, descriptor);
  }
}
