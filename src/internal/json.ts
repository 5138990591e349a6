// JSON of what is ours, whatever a program has put on prototypes: no `toJSON` is called, not even one of
// `Object.prototype`. So only for plain objects, lists and primitives.

const { stringify } = JSON;

/** `JSON.stringify` of plain data, or of a text. */
export function jsonOf(data: unknown): string {
  return stringify(data, asItIs);
}

/** The part before a `toJSON` has changed it. */
function asItIs(this: object, key: string): unknown {
  return Reflect.get(this, key);
}
