// Analysis of a function's text: how to put it into an expression again, its free names, and the constructs
// that must be rewritten or refused. Cached by text, because a callback written inline is a new function
// object at every call with the same text. Long (over 400 lines), because the whole analysis of a text is one
// record, read from one tree.
// Not here: where the text came from (scripts.ts), compiling it again (recreate.ts).

import type { AnyNode, Options } from 'acorn';
import { CodedError } from '../../errors.js';
import { viteDynamicImport } from '../toolchains/vite-files.js';
import { type FieldKey, type Gone, lengthOf, type Member, readClass } from './members.js';
import { parse } from './parser.js';
import {
  type Analysis,
  analyse,
  type ClassNode,
  type FunctionNode,
  isInside,
  type Mark,
  type Reference,
  resolve,
} from './scope.js';

/** Syntax that makes a value of the text: as it is, or as a member of an object or class literal. */
export type CodeForm = 'expression' | 'method' | 'getter' | 'setter' | 'class-method';

/** A piece of the text that is replaced by text of (nearly) the same length. */
export interface Rewrite {
  readonly start: number;
  readonly end: number;
  readonly kind: 'import.meta' | 'import()' | Gone['kind'];
  /** The name that replaces it. */
  readonly slot: string;
}

/** Names that the text does not use, for generated code beside it. */
export interface FreshNames {
  readonly meta: string;
  readonly importer: string;
  readonly prefix: string;
}

export interface Code {
  readonly text: string;
  readonly form: CodeForm;
  readonly isClass: boolean;
  readonly isArrow: boolean;
  /** Names that come from outside, globals included, in order of first use. */
  readonly freeNames: readonly string[];
  readonly writtenNames: ReadonlySet<string>;
  /** Names that it only calls: it sees no properties of the functions that they hold. */
  readonly calledNames: ReadonlySet<string>;
  readonly rewrites: readonly Rewrite[];
  /** The variable after `extends`, when it is just that. */
  readonly heritageName: string | undefined;
  readonly usesOuterThis: boolean;
  readonly usesOuterArguments: boolean;
  readonly usesOuterSuper: boolean;
  readonly usesOuterNewTarget: boolean;
  readonly usesEval: boolean;
  readonly usesImportMeta: boolean;
  readonly usesDynamicImport: boolean;
  /** A `#name` of an enclosing class. */
  readonly outerPrivateName: string | undefined;
  /** True: instances of this class have `#` fields or methods. */
  readonly hasPrivateMembers: boolean;
  /** The slot for the class that it extends, when that is more than a name. */
  readonly heritageSlot: string | undefined;
  /** Methods, accessors and functions in static fields, as the text of a class makes them. */
  readonly members: readonly Member[];
  /** Private static fields that travel as values, and those of them that may change. */
  readonly privateStatics: readonly string[];
  readonly writtenPrivates: ReadonlySet<string>;
  /** Computed keys of its fields. */
  readonly fieldKeys: readonly FieldKey[];
  /** Offset of the `}` that ends a class. */
  readonly bodyEnd: number;
  readonly names: FreshNames;
  /** True: it can name itself, and so see its own properties. */
  readonly seesItself: boolean;
  /** The same, where it does more than call itself. */
  readonly usesItself: boolean;
  /** True: strict and sloppy code give it different meanings. */
  readonly dependsOnMode: boolean;
  /** True: V8 reveals by its `caller` that it is sloppy: see `isSloppy`. */
  readonly showsMode: boolean;
  /** `name` as the text alone gives it; `undefined`: the key is computed. */
  readonly givenName: string | undefined;
  /** `length` as the text gives it. */
  readonly givenLength: number;
  /** Offset of the `(` of a function or of `class`: the position that V8 reports. */
  readonly anchor: number;
}

const parseOptions: Options = {
  ecmaVersion: 'latest',
  sourceType: 'script',
  allowImportExportEverywhere: true,
  allowSuperOutsideMethod: true,
  checkPrivateFields: false,
};

const forms: readonly { form: CodeForm; before: string; after: string }[] = [
  { form: 'expression', before: '(function(){return (', after: '\n)})' },
  { form: 'method', before: '({', after: '\n})' },
  { form: 'class-method', before: '(class{', after: '\n})' },
];

const cache = new Map<string, Code | undefined>();
const maxCachedTexts = 2000;
const nativePattern = /\{\s*\[native code\]\s*\}\s*$/;

/** Analyses `text`; `undefined` when it is not the source of a function (native code). */
export function readCode(text: string): Code | undefined {
  if (cache.has(text)) return cache.get(text);
  const code = nativePattern.test(text) ? undefined : parseCode(text);
  if (cache.size >= maxCachedTexts) cache.clear();
  cache.set(text, code);
  return code;
}

function parseCode(text: string): Code | undefined {
  const parsed = findIn(text);
  return parsed && describe(text, analyse(parsed.tree), parsed.found, parsed.offset);
}

/** The text as a tree: the root, the function's node, and its offset in the tree. */
export function treeOf(
  text: string,
): { readonly tree: AnyNode; readonly node: AnyNode; readonly offset: number } | undefined {
  const parsed = findIn(text);
  return parsed && { ...parsed, node: parsed.found.node };
}

function findIn(text: string): { tree: AnyNode; found: Found; offset: number } | undefined {
  for (const { form, before, after } of forms) {
    const tree = tryParse(before + text + after);
    if (tree === undefined) continue;
    const found = pick(tree, form, before.length);
    if (found !== undefined) return { tree, found, offset: before.length };
  }
  return undefined;
}

function tryParse(source: string): AnyNode | undefined {
  try {
    return parse(source, parseOptions);
  } catch (error) {
    if (error instanceof CodedError) throw error; // there is no parser
    return undefined; // not of this form
  }
}

interface Found {
  readonly form: CodeForm;
  readonly node: FunctionNode | ClassNode;
  /** `[computed]`, quotes included; only for members. */
  readonly key: AnyNode | undefined;
  readonly isComputed: boolean;
}

/** The one function in the wrapper of `forms`; `undefined` when the text holds something else. */
function pick(tree: AnyNode, form: CodeForm, offset: number): Found | undefined {
  if (tree.type !== 'Program') return undefined;
  const statement = tree.body[0];
  if (statement?.type !== 'ExpressionStatement') return undefined;
  const wrapper = statement.expression;
  if (form === 'expression') {
    const inner = wrapper.type === 'FunctionExpression' ? wrapper.body.body[0] : undefined;
    const node = inner?.type === 'ReturnStatement' ? inner.argument : undefined;
    const isFunction =
      node?.type === 'FunctionExpression' ||
      node?.type === 'ArrowFunctionExpression' ||
      node?.type === 'ClassExpression';
    return isFunction ? { form, node, key: undefined, isComputed: false } : undefined;
  }
  const members =
    wrapper.type === 'ObjectExpression'
      ? wrapper.properties
      : wrapper.type === 'ClassExpression'
        ? wrapper.body.body
        : [];
  const member = members[0];
  if (member?.start !== offset) return undefined;
  if (member.type !== 'Property' && member.type !== 'MethodDefinition') return undefined;
  if (member.value.type !== 'FunctionExpression') return undefined;
  if (member.type === 'Property' && !member.method && member.kind === 'init') return undefined;
  const ownForm = member.kind === 'get' ? 'getter' : member.kind === 'set' ? 'setter' : form;
  return { form: ownForm, node: member.value, key: member.key, isComputed: member.computed };
}

const noClass = { members: [], gone: [], privateStatics: [], fieldKeys: [], bodyEnd: -1 };

function describe(text: string, all: Analysis, found: Found, offset: number): Code {
  const { node, form } = found;
  const used = new Set(all.identifiers);
  const fresh = (wanted: string): string => {
    const name = freshName(used, wanted);
    used.add(name);
    return name;
  };
  const isClass = node.type === 'ClassExpression' || node.type === 'ClassDeclaration';
  const { members, gone, privateStatics, fieldKeys, bodyEnd } = isClass
    ? readClass(node, offset, fresh)
    : noClass;
  const isGone = (start: number): boolean =>
    gone.some((piece) => start - offset >= piece.start && start - offset < piece.end);
  const isArrow = node.type === 'ArrowFunctionExpression';
  const inside = (start: number): boolean => start >= node.start && start < node.end;
  const heritage = isClass && node.superClass ? node.superClass : undefined;
  const isFree = ({ name, scope, start }: Reference): boolean => {
    if (!inside(start) || isGone(start)) return false;
    const binding = resolve(scope, name);
    return binding === undefined || !isInside(binding.scope, node);
  };
  const outside = all.references.filter(isFree);
  const free = outside.filter(({ name }) => name !== viteDynamicImport);
  const viteImports = outside.filter(({ name }) => name === viteDynamicImport);
  const marks = all.marks.filter(({ start }) => inside(start) && !isGone(start));
  const outer = (mark: Mark): boolean => {
    for (let at = mark.scope; ; ) {
      if (at.ownsThis) return !isInside(at, node);
      if (at.parent === undefined) return true;
      at = at.parent;
    }
  };
  const has = (kind: Mark['kind']): boolean => marks.some((mark) => mark.kind === kind);
  const hasOuter = (kind: Mark['kind']): boolean =>
    marks.some((mark) => mark.kind === kind && outer(mark));
  const names = {
    meta: fresh('__meta__url'),
    importer: fresh('impor_'),
    prefix: freshPrefix(used),
  };
  const isOwnName = ({ name }: Reference): boolean =>
    name === 'arguments' || ('id' in node && name === node.id?.name);
  const freeNames = [...new Set(free.map(({ name }) => name))].filter((n) => n !== 'arguments');
  return {
    text,
    form,
    isClass,
    isArrow,
    freeNames,
    writtenNames: new Set(free.filter(({ isWrite }) => isWrite).map(({ name }) => name)),
    calledNames: onlyCalled(free),
    rewrites: rewritesOf(found, [...marks, ...viteImports], gone, names, offset),
    heritageName: heritage?.type === 'Identifier' ? heritage.name : undefined,
    // The text of an eval may name the `this` that it sees.
    usesOuterThis:
      isArrow && ((hasOuter('this') && !isThisForAwaiter(text, marks, offset)) || hasOuter('eval')),
    usesOuterArguments: free.some(({ name }) => name === 'arguments'),
    usesOuterSuper: (isArrow || found.key !== undefined) && hasSuper(marks, node),
    usesOuterNewTarget: isArrow && hasOuter('new.target'),
    usesEval: has('eval'),
    usesImportMeta: has('import.meta'),
    usesDynamicImport: has('import()') || viteImports.length > 0,
    outerPrivateName: outerPrivate(marks, found),
    hasPrivateMembers: isClass && membersOf(node).some(isPrivateInstanceMember),
    heritageSlot: gone.find(({ kind }) => kind === 'heritage')?.slot,
    members,
    privateStatics,
    fieldKeys,
    writtenPrivates: all.writtenPrivates,
    bodyEnd,
    names,
    seesItself: all.references.some(isOwnName),
    usesItself: has('eval') || all.references.some((each) => isOwnName(each) && !each.isCall),
    dependsOnMode: all.dependsOnMode,
    showsMode: node.type === 'FunctionExpression' && form === 'expression' && isOrdinary(node),
    givenName: givenName(found),
    givenLength: givenLength(node),
    anchor: anchorOf(text, node, found.key, offset),
  };
}

function onlyCalled(references: readonly Reference[]): Set<string> {
  const names = new Set(references.map(({ name }) => name));
  for (const { name, isCall } of references) if (!isCall) names.delete(name);
  return names;
}

function isOrdinary({ async, generator }: FunctionNode): boolean {
  return !async && !generator;
}

function givenName({ form, node, key, isComputed }: Found): string | undefined {
  if (key === undefined)
    return node.type === 'ArrowFunctionExpression' ? '' : (node.id?.name ?? '');
  if (isComputed) return undefined;
  const prefix = form === 'getter' ? 'get ' : form === 'setter' ? 'set ' : '';
  if (key.type === 'Identifier') return prefix + key.name;
  return key.type === 'Literal' ? prefix + String(key.value) : undefined;
}

function givenLength(node: FunctionNode | ClassNode): number {
  let params: readonly AnyNode[] = [];
  if (node.type !== 'ClassExpression' && node.type !== 'ClassDeclaration') params = node.params;
  else {
    for (const member of node.body.body) {
      if (member.type === 'MethodDefinition' && member.kind === 'constructor') {
        params = member.value.params;
      }
    }
  }
  return lengthOf(params);
}

/** True: `super` refers to something outside: the home object of a method, or of the code around an arrow. */
function hasSuper(marks: readonly Mark[], node: AnyNode): boolean {
  return marks.some((mark) => {
    if (mark.kind !== 'super') return false;
    for (let at = mark.scope; at.node !== node; ) {
      // A class or an object literal inside has its own.
      if (at.node.type === 'ClassExpression' || at.node.type === 'ClassDeclaration') return false;
      if (at.ownsThis && at.node.type === 'FunctionExpression') return false;
      if (at.parent === undefined) return true;
      at = at.parent;
    }
    return node.type === 'FunctionExpression' || node.type === 'ArrowFunctionExpression';
  });
}

function outerPrivate(marks: readonly Mark[], found: Found): string | undefined {
  if (found.key?.type === 'PrivateIdentifier') return found.key.name;
  for (const mark of marks) {
    if (mark.kind !== 'private') continue;
    let at: Mark['scope'] | undefined = mark.scope;
    while (at !== undefined && !at.privateNames.has(mark.name)) at = at.parent;
    if (at === undefined) return mark.name;
  }
  return undefined;
}

type MemberNode = ClassNode['body']['body'][number];

function membersOf(node: AnyNode): MemberNode[] {
  return node.type === 'ClassExpression' || node.type === 'ClassDeclaration' ? node.body.body : [];
}

function isPrivateInstanceMember(member: MemberNode): boolean {
  return member.type !== 'StaticBlock' && !member.static && member.key.type === 'PrivateIdentifier';
}

/** A name that the text does not use. */
function freshName(used: ReadonlySet<string>, wanted: string): string {
  let name = wanted;
  for (let count = 0; used.has(name); count += 1)
    name = `${wanted.slice(0, Math.max(1, wanted.length - String(count).length))}${count}`;
  return name;
}

/** A prefix of no name in the text, which may be one that was re-created in a worker. */
function freshPrefix(used: ReadonlySet<string>): string {
  const names = [...used].filter((name) => name.startsWith('_manycore'));
  let prefix = '_manycore';
  for (let count = 0; names.some((name) => name.startsWith(prefix)); count += 1) {
    prefix = `_manycore${count}_`;
  }
  return prefix;
}

/**
 * True: the only `this` is an argument of a compiler's helper for async functions, which needs none:
 * `__awaiter(this, …)` of TypeScript, `__async(this, …)` of esbuild.
 */
function isThisForAwaiter(text: string, marks: readonly Mark[], offset: number): boolean {
  return marks.every(
    ({ kind, start }) =>
      kind !== 'this' || /__a(?:waiter|sync)\($/.test(text.slice(0, start - offset).slice(-12)),
  );
}

function rewritesOf(
  found: Found,
  marks: readonly (Mark | Reference)[],
  gone: readonly Gone[],
  names: FreshNames,
  offset: number,
): Rewrite[] {
  const rewrites: Rewrite[] = [...gone];
  const add = (start: number, end: number, kind: Rewrite['kind'], slot: string): void => {
    rewrites.push({ start: start - offset, end: end - offset, kind, slot });
  };
  for (const mark of marks) {
    const { start } = mark;
    if (!('kind' in mark)) add(start, start + mark.name.length, 'import()', names.importer);
    else if (mark.kind === 'import.meta') add(start, mark.end, mark.kind, names.meta);
    else if (mark.kind === 'import()') {
      add(start, start + 'import'.length, mark.kind, names.importer);
    }
  }
  if (found.key && found.isComputed) add(found.key.start, found.key.end, 'key', '0');
  return rewrites.sort((a, b) => a.start - b.start);
}

/** Used only where the module's source is not available; see `placeOf` in scripts.ts. */
function anchorOf(text: string, node: AnyNode, key: AnyNode | undefined, offset: number): number {
  if (key !== undefined) return node.start - offset; // a method's function starts at its `(`
  if (node.type === 'ArrowFunctionExpression') return /^(?:async\s*)?/.exec(text)?.[0].length ?? 0;
  if (node.type === 'FunctionExpression') return Math.max(0, text.indexOf('('));
  return 0;
}
