// The definition of a function's code: its text, in which names that the text does not use replace what
// cannot be compiled elsewhere. Replacements have the same length, so that columns stay.
// Not here: compiling it (recreate.ts).

import { descriptorOf, jsonOf } from '../../lib/index.js';
import { copyPrefix } from '../modules/marks.js';
import { isStrictAt, type Place } from '../modules/scripts.js';
import type { CodeDefinition } from '../protocol.js';
import { cellEdits, type Edit } from '../text/cells.js';
import type { Code, Rewrite } from '../text/code.js';
import { isConstant } from '../text/scope.js';
import { isMappedInPlace } from '../toolchains/source-maps.js';
import type { AnyFunction } from '../types.js';
import type { Slot } from './describe.js';

/** `more`: further edits of the text, for slots that are no variables. */
export function definitionOf(
  fn: AnyFunction,
  code: Code,
  place: Place | undefined,
  slots: readonly Slot[],
  more: readonly Edit[] = [],
): CodeDefinition {
  const { names, privateStatics } = code;
  const cells = slots.filter(({ cell }) => cell !== undefined).map(({ name }) => name);
  return {
    kind: 'code',
    text: code.text,
    compiled: compiledText(code, cells, more),
    form: code.form,
    isClass: code.isClass,
    isStrict: isStrictFunction(fn, code, place),
    fileName: fileNameAt(place),
    url: place?.script.url ?? '',
    line: place?.line ?? 0,
    column: place?.column ?? 0,
    slots: slots.map(({ name }) => name),
    cells,
    variables: slots.filter((slot) => mayChange(slot, code)).map(({ name }) => name),
    heritage: slots.findIndex(({ name }) => name === (code.heritageSlot ?? code.heritageName)),
    privates: [...privateStatics],
    metaName: code.usesImportMeta ? names.meta : '',
    importName: code.usesDynamicImport ? names.importer : '',
    functionName: usualName(fn) === code.givenName ? undefined : usualName(fn),
    prefix: names.prefix,
  };
}

/**
 * True: the variable of the slot is assigned again in the worker. A function is made with the values of one
 * moment, so only its own text can assign there. A class stays and takes newer values over.
 */
function mayChange({ name, binding, cell, isFixed, inScripts, global }: Slot, code: Code): boolean {
  if (binding?.kind === 'const') return false; // assigning it throws, there as well
  if (code.isClass) {
    if (isFixed) return false;
    return code.usesEval || inScripts !== undefined || !binding || !isConstant(binding);
  }
  if (cell !== undefined || binding?.kind === 'import') return false; // the cell itself stays
  return code.usesEval || code.writtenNames.has(name) || global?.writes === true;
}

/** The file name in stacks: marked where that of the file would not identify the text. */
function fileNameAt(place: Place | undefined): string {
  if (place === undefined) return '';
  const { script, line, column } = place;
  const isMarked = isMappedInPlace(script.name, script.source, line, column);
  return isMarked ? copyPrefix + script.name : script.name;
}

/** Compiled texts by cells and further edits. */
const compiledTexts = new WeakMap<Code, Map<string, string>>();

/** The text with replacements of the same length for parts that are not evaluated again. */
function compiledText(code: Code, cells: readonly string[], more: readonly Edit[]): string {
  let texts = compiledTexts.get(code);
  if (texts === undefined) {
    texts = new Map();
    compiledTexts.set(code, texts);
  }
  const key = jsonOf([cells, more]);
  let compiled = texts.get(key);
  if (compiled === undefined) {
    compiled = compileText(code, cells, more);
    texts.set(key, compiled);
  }
  return compiled;
}

function compileText(code: Code, cells: readonly string[], more: readonly Edit[]): string {
  const { text, rewrites, privateStatics, bodyEnd, names } = code;
  const edits: Edit[] = rewrites.map(({ start, end, kind, slot }) => {
    return { start, end, text: replacement(kind, slot, text.slice(start, end)) };
  });
  const isGone = ({ start }: Edit): boolean =>
    rewrites.some((rewrite) => start >= rewrite.start && start < rewrite.end);
  const ofCells = cellEdits(code, new Set(cells));
  edits.push(...[...ofCells, ...more].filter((edit) => !isGone(edit)));
  if (privateStatics.length > 0) {
    // Reads and sets private statics: nothing outside of the body can.
    const list = privateStatics.map((name) => `this.#${name}`).join();
    const value = `${names.prefix}v`;
    const block = `;static{${names.prefix}.p=[()=>[${list}],(${value})=>{[${list}]=${value}}]}`;
    edits.push({ start: bodyEnd, end: bodyEnd, text: block });
  }
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end, text: by } of edits.sort((a, b) => a.start - b.start || a.end - b.end)) {
    pieces.push(text.slice(at, start), by);
    at = end;
  }
  return pieces.join('') + text.slice(at);
}

/** Text of the same length; lines stay where they are. */
function replacement(kind: Rewrite['kind'], slot: string, old: string): string {
  const blank = old.replace(/[^\n\r\u2028\u2029]/g, ' ');
  // A `;` ends the member before it, as the old text did.
  if (kind === 'blank') return `;${blank.slice(1)}`;
  return slot + blank.slice(slot.length);
}

/** The `name` of a function or class, when it is a property like the language makes it. */
export function usualName(fn: AnyFunction): string | undefined {
  const own = descriptorOf(fn, 'name');
  const isOpen = own?.configurable === true || Object.isSealed(fn);
  const isUsual = own?.writable === false && own.enumerable === false && isOpen;
  return isUsual && typeof own.value === 'string' ? own.value : undefined;
}

/** The `name` of the re-created function. */
export function madeName(definition: CodeDefinition, code: Code): string | undefined {
  return definition.functionName ?? code.givenName;
}

const callerOf = descriptorOf(Function.prototype, 'caller')?.get;
/** Up to Node 24 a sloppy function has a `caller` of its own, and the shared getter throws for all. */
const isShared = callerOf?.name === 'get caller';

/** True: a function of the plain kind (`showsMode` of its code) is sloppy. */
export function isSloppy(fn: AnyFunction): boolean {
  if (callerOf === undefined || !isShared) return Object.hasOwn(fn, 'caller');
  try {
    Reflect.apply(callerOf, fn, []);
    return true;
  } catch {
    return false; // strict functions hide it
  }
}

/** True: the text is compiled as strict code. V8 reveals it for a plain function, the source for others. */
export function isStrictFunction(fn: AnyFunction, code: Code, place: Place | undefined): boolean {
  if (code.showsMode) return !isSloppy(fn);
  return place !== undefined && isStrictAt(place);
}
