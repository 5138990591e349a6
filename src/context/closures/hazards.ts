// Constructs that cannot travel although each value could, because they mean something only where they were
// written.
// Not here: values (refuse.ts), shared variables (sharing.ts).

import { functionName } from '../../lib/index.js';
import type { Code } from '../text/code.js';
import type { AnyFunction } from '../types.js';
import { isBuiltinGlobal } from '../values/intrinsics.js';
import { type Path, transferError } from '../values/refuse.js';
import { inspectSelf } from './inspector.js';

export function refuseUnreadable(code: Code, path: Path): void {
  const say = (why: string): Error => transferError('TRANSFER_UNREADABLE', path, why);
  if (code.outerPrivateName !== undefined) {
    throw say(
      `it uses #${code.outerPrivateName} of a class around it: pass the values that it needs as an argument, ` +
        'or call a public method',
    );
  }
  if (code.usesOuterSuper)
    throw say('it uses super of the code around it: call the method by name');
  if (code.usesOuterNewTarget)
    throw say('it uses new.target of the function around it: copy it into a const');
}

export function inspectorMissing(code: Code, path: Path): never {
  const names = code.freeNames.filter((name) => !isBuiltinGlobal(name)).join(', ');
  try {
    inspectSelf();
  } catch (cause) {
    throw transferError(
      'TRANSFER_UNREADABLE',
      path,
      `it captures ${names}, and this process may not inspect itself: under --permission add ` +
        '--allow-inspector (Node 24 and later), pass the values as arguments, or use ' +
        'task(moduleUrl, exportName)',
      { cause },
    );
  }
  throw new TypeError('the inspector is there after all');
}

/** A computed key of a field that may differ when it is evaluated again. */
export function refuseFieldKey(text: string, path: Path): never {
  throw transferError(
    'TRANSFER_UNREADABLE',
    path,
    `the key of the field [${text}] of the class may be another when it is evaluated again: take it from a ` +
      'const, or write this[…] = … in the constructor instead of the field',
  );
}

/** A name that only a computed key of a field uses: V8 keeps no variable for it. */
export function refuseComputedField(name: string, path: Path): never {
  throw transferError(
    'TRANSFER_UNREADABLE',
    path,
    `the variable \`${name}\`, which names a field of the class in brackets, was not kept: write ` +
      `this[${name}] = … in the constructor instead of the field`,
  );
}

export function nameOf(fn: AnyFunction): string {
  return functionName(fn) === '' ? 'an anonymous function' : `the function ${functionName(fn)}`;
}

export function titleOf(fn: AnyFunction): string {
  return functionName(fn) === '' ? 'the function' : `the function ${functionName(fn)}`;
}
