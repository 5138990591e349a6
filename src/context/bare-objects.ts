// Runs a body while `Object.prototype` has what the language gives it and nothing else. Node's inspector session
// reads its messages as ordinary objects: with an `error` or `id` that a program has put there, each
// answer is a failure, and each event one of no known kind.
// Not here: code of ours, which reads own properties only.

import vm from 'node:vm';
import { defineOwn, descriptorOf, type OwnDescriptor } from '../internal/index.js';

const standard: ReadonlySet<string | symbol> = new Set(
  (
    'constructor __defineGetter__ __defineSetter__ hasOwnProperty __lookupGetter__ ' +
    '__lookupSetter__ isPrototypeOf propertyIsEnumerable toString valueOf __proto__ toLocaleString'
  ).split(' '),
);

/** That of Node's own code, which is not ours in a context of node:vm. */
const prototypeOfNode: object = Object(vm.runInThisContext('Object.prototype'));

/** `body` must end at once, and call no code of the program. What cannot be deleted stays. */
export function withBareObjects<T>(body: () => T): T {
  const keys = Reflect.ownKeys(prototypeOfNode);
  if (keys.length === standard.size) return body();
  const hidden: [key: string | symbol, descriptor: OwnDescriptor][] = [];
  for (const key of keys) {
    const descriptor = standard.has(key) ? undefined : descriptorOf(prototypeOfNode, key);
    if (descriptor !== undefined && Reflect.deleteProperty(prototypeOfNode, key)) {
      hidden.push([key, descriptor]);
    }
  }
  try {
    return body();
  } finally {
    for (const [key, descriptor] of hidden) defineOwn(prototypeOfNode, key, descriptor);
  }
}
