// The definition of a function's code: its text with what cannot be compiled elsewhere replaced by
// names that the text does not use, in pieces of the same length so that columns stay.
// Not here: compiling it (recreate.ts).

import type { Code } from './code.js';
import type { CodeDefinition } from './protocol.js';
import { isStrictAt, type Place } from './scripts.js';
import type { AnyFunction } from './types.js';

/** The slot that stands for what a class extends, when that is more than a name. */
export function heritageSlot(code: Code): string {
  return freshName(code.identifiers, 'base');
}

/** A name that the text does not use. */
function freshName(used: ReadonlySet<string>, wanted: string): string {
  let name = wanted;
  for (let count = 0; used.has(name); count += 1)
    name = `${wanted.slice(0, Math.max(1, wanted.length - String(count).length))}${count}`;
  return name;
}

export function definitionOf(
  fn: AnyFunction,
  code: Code,
  place: Place | undefined,
  slots: readonly { readonly name: string }[],
): CodeDefinition {
  const { identifiers } = code;
  const metaName = freshName(identifiers, '__meta__url');
  const importName = freshName(identifiers, 'impor_');
  const replacements = {
    'import.meta': metaName,
    'import()': importName,
    heritage: heritageSlot(code),
    key: '0',
  };
  let compiled = code.text;
  for (const { start, end, kind } of [...code.rewrites].reverse()) {
    const wanted = replacements[kind].padEnd(end - start);
    compiled = compiled.slice(0, start) + wanted + compiled.slice(end);
  }
  return {
    kind: 'code',
    text: code.text,
    compiled,
    form: code.form,
    isClass: code.isClass,
    isStrict: isStrictFunction(fn, code, place),
    fileName: place?.script.name ?? '',
    url: place?.script.url ?? '',
    line: place?.line ?? 0,
    column: place?.column ?? 0,
    slots: slots.map(({ name }) => name),
    metaName: code.usesImportMeta ? metaName : '',
    importName: code.usesDynamicImport ? importName : '',
    functionName: usualName(fn) === code.givenName ? undefined : usualName(fn),
    prefix: freshName(identifiers, '_manycore'),
  };
}

/** The `name` of a function or class, when it is a property like the language makes it. */
export function usualName(fn: AnyFunction): string | undefined {
  const own = Object.getOwnPropertyDescriptor(fn, 'name');
  const isUsual = own?.writable === false && own.enumerable === false && own.configurable === true;
  return isUsual && typeof own.value === 'string' ? own.value : undefined;
}

/** The `name` that a function has when it was made again. */
export function madeName(definition: CodeDefinition, code: Code): string | undefined {
  return definition.functionName ?? code.givenName;
}

/** Whether the text is compiled as strict code; V8 says it of a plain function, the source of others. */
export function isStrictFunction(fn: AnyFunction, code: Code, place: Place | undefined): boolean {
  if (code.showsMode) return !Object.hasOwn(fn, 'caller');
  return place !== undefined && isStrictAt(place);
}
