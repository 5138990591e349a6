// JSON of what is ours, whatever a program has put on prototypes: no `toJSON` is called, not even one of
// `Object.prototype`. So only for plain objects, lists and primitives. A program that replaced `JSON.stringify`
// before this was loaded, by something that works otherwise, gets that of a fresh realm here.

import vm from 'node:vm';

type Stringify = (data: unknown, replacer: typeof asItIs) => string;

const stringify: Stringify = works(JSON.stringify)
  ? JSON.stringify
  : vm.runInNewContext('JSON.stringify');

/** `JSON.stringify` of plain data, or of a text. */
export function jsonOf(data: unknown): string {
  return stringify(data, asItIs);
}

/** The part before a `toJSON` has changed it. */
function asItIs(this: object, key: string): unknown {
  return Reflect.get(this, key);
}

function works(given: Stringify): boolean {
  try {
    const part = { b: ['"', 1.5, null, true], a: { toJSON: () => 'wrong' } };
    return (
      given(part, asItIs) === '{"b":["\\"",1.5,null,true],"a":{}}' && given('', asItIs) === '""'
    );
  } catch {
    return false;
  }
}
