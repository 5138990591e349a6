// The source text of a function, as V8 has it. Libraries replace `Function.prototype.toString`, to show
// something else for what they wrap: a function that travels by such a text would be another one.

import vm from 'node:vm';

const { apply } = Reflect;

/** That of this realm, or of a new one where a program has replaced it before this library was loaded. */
function intrinsicToString(): object {
  const { toString } = Function.prototype;
  try {
    if (/^function toString\(\) \{\s*\[native code\]\s*\}$/.test(apply(toString, toString, []))) {
      return toString;
    }
  } catch {
    // A replacement that works for some functions only.
  }
  return Object(vm.runInNewContext('Function.prototype.toString'));
}

const toString = intrinsicToString();

/** `Function.prototype.toString` as the language has it. Throws for what is no function. */
export function sourceText(fn: object): string {
  return typeof toString === 'function' ? String(apply(toString, fn, [])) : '';
}
