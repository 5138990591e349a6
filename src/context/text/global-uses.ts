// Places where a text uses members of the global object: `globalThis.config`, `const { config } =
// globalThis`, `'config' in globalThis`, `Reflect.get(globalThis, 'config')`, `delete globalThis.config`.
// Other names of the global object and a variable with the key count as well. V8 shows no variable for a
// member that the program added. So each use becomes one of a slot, or of a cell where the call assigns the
// member. An assignment also goes to the global object of the running thread, for modules that read it there.
// Not here: lists of the global object (global-lists.ts), and the global object handed to other code.

import type { AnyNode } from 'acorn';
import { type Edit, opener, walk } from './cells.js';
import { treeOf } from './code.js';
import { type Key, keyAt } from './global-keys.js';
import { type List, listAt } from './global-lists.js';
import { type GlobalNames, GlobalObjects } from './global-objects.js';
import { isNamed, TextNames } from './text-names.js';

/** The slot of a member. */
export interface Ref {
  readonly slot: string;
  /** True: it holds `[value]`, or `[]` where there is no such member. */
  readonly isCell: boolean;
}

/** A place that uses members. */
export interface Use {
  readonly keys: readonly Key[];
  /** True: it only tests whether the member exists. */
  readonly isHas: boolean;
  readonly writes: boolean;
  /** True: it assigns only where there is none: `globalThis.cache ??= new Map()`. */
  readonly makes: boolean;
  /** True: it calls the member with the global object as `this`. */
  readonly calls: boolean;
  /** True: no slot can answer it: `Object.getOwnPropertyDescriptor(globalThis, 'config')`. */
  readonly isGuarded: boolean;
  /** Uses that take all members. */
  readonly lists: readonly List[];
  /** The global object that fills a pattern, for keys of which some have slots and others not. */
  readonly mixed?: List;
  /** Changes of the text, for keys that have a slot. `bind`: the name of `Function.prototype.bind`. */
  edits(refs: readonly (Ref | undefined)[], bind: string): Edit[];
}

/** A text, and the meaning of its names. */
interface Text {
  readonly source: string;
  /** Offset of the text in its tree. */
  readonly offset: number;
  readonly names: TextNames;
  readonly objects: GlobalObjects;
}

/** A member that stands in the text, with its ancestors. */
interface Place {
  readonly at: AnyNode;
  readonly parents: readonly AnyNode[];
  readonly text: string;
  readonly key: Key;
  /** An expression for the global object there. */
  readonly object: string;
}

/** The uses of members of the global object in `source`, with the names of `globals`. */
export function globalUses(source: string, globals: GlobalNames): Use[] {
  const parsed = treeOf(source);
  if (parsed === undefined) return [];
  const { tree, node, offset } = parsed;
  const names = new TextNames(tree, node);
  const textOf = ({ start, end }: AnyNode): string => source.slice(start - offset, end - offset);
  const objects = new GlobalObjects(names, globals, textOf);
  const uses: Use[] = [];
  walk(node, [], (at, parents) => {
    const found = useAt(at, parents, { source, offset, names, objects });
    if (found !== undefined) uses.push(moved(found, offset));
  });
  return uses;
}

/** `use` with offsets that count from the start of the text. */
function moved(use: Use, offset: number): Use {
  const move = <T extends { start: number; end: number }>(range: T): T => {
    return { ...range, start: range.start - offset, end: range.end - offset };
  };
  return {
    ...use,
    keys: use.keys.map(move),
    lists: use.lists.map(move),
    ...(use.mixed && { mixed: move(use.mixed) }),
    edits: (refs, bind) => use.edits(refs, bind).map(move),
  };
}

/** The use that `at` makes of members of the global object: a read, an assignment, or none. */
function useAt(at: AnyNode, parents: readonly AnyNode[], text: Text): Use | undefined {
  const { names, objects } = text;
  if (at.type === 'MemberExpression' && at.property.type !== 'PrivateIdentifier') {
    const object = objects.find(at.object);
    return object === undefined ? undefined : memberUse(placeOf(at, parents, object, text));
  }
  if (at.type === 'BinaryExpression' && at.operator === 'in') {
    if (objects.find(at.right) === undefined) return undefined;
    return hasUse(at, parents, keyAt(at.left, true, names));
  }
  const use =
    at.type === 'CallExpression' ? callUse(at, parents, text) : patternAt(at, parents, text);
  if (use !== undefined) return use;
  const lists = listAt(at, names, (node) => objects.find(node) !== undefined);
  return lists.length === 0 ? undefined : { ...read, keys: [], lists, edits: () => [] };
}

function placeOf(
  at: AnyNode & { type: 'MemberExpression' },
  parents: readonly AnyNode[],
  object: string,
  { source, offset, names }: Text,
): Place {
  const { property, computed } = at;
  const name = source.slice(property.start - offset, property.end - offset);
  const text = `${object}${computed ? `[${name}]` : `.${name}`}`;
  return { at, parents, text, key: keyAt(property, computed, names), object };
}

/** `Reflect.get(globalThis, 'config')` and the like. */
function callUse(
  at: AnyNode & { type: 'CallExpression' },
  parents: readonly AnyNode[],
  { names, objects }: Text,
): Use | undefined {
  const { callee } = at;
  const isOwnMethod =
    callee.type === 'MemberExpression' &&
    !callee.computed &&
    isNamed(callee.property, 'hasOwnProperty') &&
    objects.find(callee.object) !== undefined;
  if (isOwnMethod && at.arguments[0] !== undefined) {
    return hasUse(at, parents, keyAt(at.arguments[0], true, names));
  }
  const [object, name] = at.arguments;
  const how = calledFor(callee, names);
  const found = objects.find(object);
  if (how === undefined || object === undefined || name === undefined || found === undefined) {
    return undefined;
  }
  const key = keyAt(name, true, names);
  if (how === 'has') return hasUse(at, parents, key);
  if (how === 'value') return valueUse(at, key);
  if (how === 'guard') return { ...read, isGuarded: true, keys: [key], edits: () => [] };
  return argumentUse(at, parents, key, named(object, found), name);
}

/** A pattern that is filled from the global object. */
function patternAt(at: AnyNode, parents: readonly AnyNode[], text: Text): Use | undefined {
  const { names, objects } = text;
  const [pattern, value] = destructured(at);
  if (pattern?.type !== 'ObjectPattern' || !value) return undefined;
  const object = objects.find(value);
  if (object === undefined) return undefined;
  const keys: Key[] = [];
  let hasRest = false;
  for (const property of pattern.properties) {
    if (property.type === 'RestElement') hasRest = true;
    else keys.push(keyAt(property.key, property.computed, names));
  }
  return patternUse(at, parents, keys, named(value, object), hasRest);
}

/** A place of the global object in the text, and an expression for it. */
interface Named {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

function named({ start, end }: AnyNode, text: string): Named {
  return { start, end, text };
}

const read = {
  isHas: false,
  writes: false,
  makes: false,
  calls: false,
  isGuarded: false,
  lists: [],
};
const write = { ...read, writes: true };

function valueOf({ slot, isCell }: Ref): string {
  return isCell ? `${slot}[0]` : slot;
}

function valueUse({ start, end }: AnyNode, key: Key): Use {
  return {
    ...read,
    keys: [key],
    edits: ([ref]) => (ref ? [{ start, end, text: valueOf(ref) }] : []),
  };
}

function hasUse(at: AnyNode, parents: readonly AnyNode[], key: Key): Use {
  const { start, end } = at;
  const before = opener(start, parents);
  return {
    ...read,
    isHas: true,
    keys: [key],
    edits: ([ref]) => {
      if (ref === undefined) return [];
      return [{ start, end, text: ref.isCell ? `${before}(0 in ${ref.slot})` : ref.slot }];
    },
  };
}

/** A member in the text: read, assigned, deleted or called. */
function memberUse(place: Place): Use {
  const { at, key } = place;
  const { start, end } = at;
  const parents = [...place.parents];
  // `globalThis?.f` calls and deletes like `globalThis.f`.
  let node = at;
  while (parents.at(-1)?.type === 'ChainExpression') node = parents.pop() ?? node;
  const parent = parents.at(-1);
  const keys = [key];
  const used = (ref: Ref): Edit => ({ start, end, text: valueOf(ref) });
  if (isCalled(node, parent)) {
    const isOptional = parent?.type === 'CallExpression' && parent.optional;
    const before = isOptional ? opener(start, parents) : '';
    return {
      ...read,
      calls: true,
      keys,
      edits: ([ref], bind) => {
        if (ref === undefined) return [];
        const value = valueOf(ref);
        const bound = `${bind}.call(${value},${place.object})`;
        return [{ start, end, text: isOptional ? `${before}(${value}&&${bound})` : bound }];
      },
    };
  }
  if (parent?.type === 'UnaryExpression' && parent.operator === 'delete') {
    return { ...write, keys, edits: ([ref]) => (ref ? deleted(parent, parents, ref) : []) };
  }
  if (!isAssigned(node, parent, parents.at(-2))) return valueUse(at, key);
  // `globalThis.n = cell[0] = …` assigns both.
  const both = (ref: Ref): string => `${place.text}=${valueOf(ref)}`;
  if (parent?.type === 'AssignmentExpression' && parent.start === start) {
    const makes = parent.operator === '??=' || parent.operator === '||=';
    const edits: Use['edits'] = ([ref]) => (ref ? [{ start, end, text: both(ref) }] : []);
    return { ...write, makes, keys, edits };
  }
  if (parent?.type === 'UpdateExpression' && parents.at(-2)?.type === 'ExpressionStatement') {
    const whole = (ref: Ref): Edit => {
      const by = `${place.text}=${parent.operator}${valueOf(ref)}`;
      return { start: parent.start, end: parent.end, text: by };
    };
    return { ...write, keys, edits: ([ref]) => (ref ? [whole(ref)] : []) };
  }
  return { ...write, keys, edits: ([ref]) => (ref ? [used(ref)] : []) };
}

/** `delete globalThis.n&&delete cell[0]` */
function deleted({ start, end }: AnyNode, parents: readonly AnyNode[], ref: Ref): Edit[] {
  const isStatement = parents.at(-2)?.type === 'ExpressionStatement';
  const [before, after] = isStatement ? ['', ''] : [`${opener(start, parents)}(`, ')'];
  return [
    { start, end: start, text: before },
    { start: end, end, text: `&&delete ${valueOf(ref)}${after}` },
  ];
}

/** `Reflect.set(globalThis, 'n', …)` and the like, which become calls for element 0 of a cell. */
function argumentUse(
  at: AnyNode,
  parents: readonly AnyNode[],
  key: Key,
  object: Named,
  name: AnyNode,
): Use {
  const { start, end } = at;
  const isStatement = parents.at(-1)?.type === 'ExpressionStatement';
  // A function that returns the object.
  const isReturned = !isStatement && at.type === 'CallExpression' && isObjectDefine(at.callee);
  const before = { start, end: start, text: `${opener(start, parents)}(` };
  const after = { start: end, end, text: `,${object.text})` };
  return {
    ...write,
    keys: [key],
    edits: ([ref]) => {
      if (ref === undefined) return [];
      const edits = [
        { start: object.start, end: object.end, text: ref.slot },
        { start: name.start, end: name.end, text: '0' },
      ];
      return isReturned ? [before, ...edits, after] : edits;
    },
  };
}

function isObjectDefine(callee: AnyNode): boolean {
  const isMember = callee.type === 'MemberExpression' && callee.object.type === 'Identifier';
  return isMember && callee.object.type === 'Identifier' && callee.object.name === 'Object';
}

/** Fills a pattern from an object of the slots. */
function patternUse(
  at: AnyNode,
  parents: readonly AnyNode[],
  keys: readonly Key[],
  { start, end, text }: Named,
  hasRest: boolean,
): Use {
  // The value of an assignment that is used is the global object itself.
  const isUsed =
    at.type === 'AssignmentExpression' && parents.at(-1)?.type !== 'ExpressionStatement';
  const before = { start: at.start, end: at.start, text: `${opener(at.start, parents)}(` };
  const after = { start: at.end, end: at.end, text: `,${text})` };
  const except = keys.map((key) => key.text).filter((each) => each !== '');
  return {
    ...read,
    keys,
    lists: hasRest ? [{ start, end, what: 'members', except }] : [],
    mixed: { start, end, what: 'all', except: [] },
    edits: (refs) => {
      const parts = keys.map((key, index) => {
        const ref = refs[index];
        return `[${key.text}]:${ref ? valueOf(ref) : `${text}[${key.text}]`}`;
      });
      const rest = hasRest ? `...${text},` : '';
      const edits = [{ start, end, text: `{${rest}${parts.join()}}` }];
      return isUsed ? [before, ...edits, after] : edits;
    },
  };
}

const calls: Readonly<Record<string, 'value' | 'has' | 'write' | 'guard'>> = {
  'Reflect.get': 'value',
  'Reflect.has': 'has',
  'Object.hasOwn': 'has',
  'Reflect.set': 'write',
  'Reflect.defineProperty': 'write',
  'Reflect.deleteProperty': 'write',
  'Object.defineProperty': 'write',
  'Object.getOwnPropertyDescriptor': 'guard',
  'Reflect.getOwnPropertyDescriptor': 'guard',
};

/** The use that a function of the language makes of an object and a key; `undefined`: none. */
function calledFor(callee: AnyNode, names: TextNames) {
  if (callee.type !== 'MemberExpression' || callee.computed) return undefined;
  const { object, property } = callee;
  // `Object.prototype.hasOwnProperty.call(globalThis, 'n')`
  const isOfMethod = object.type === 'MemberExpression' && !object.computed;
  if (isOfMethod && isNamed(property, 'call') && isNamed(object.property, 'hasOwnProperty')) {
    return 'has';
  }
  if (!names.isOutside(object) || property.type !== 'Identifier') return undefined;
  const name = `${object.name}.${property.name}`;
  return Object.hasOwn(calls, name) ? calls[name] : undefined;
}

/** The pattern that `at` fills, and its source. */
function destructured(
  at: AnyNode,
): readonly [pattern?: AnyNode, value?: AnyNode | null | undefined] {
  if (at.type === 'VariableDeclarator') return [at.id, at.init];
  const isAssignment = at.type === 'AssignmentExpression' || at.type === 'AssignmentPattern';
  return isAssignment ? [at.left, at.right] : [];
}

/** True: `parent` calls `member`, and so passes it as `this`. */
function isCalled(member: AnyNode, parent: AnyNode | undefined): boolean {
  if (parent?.type === 'TaggedTemplateExpression') return parent.tag === member;
  return parent?.type === 'CallExpression' && parent.callee === member;
}

function isAssigned(
  member: AnyNode,
  parent: AnyNode | undefined,
  holder: AnyNode | undefined,
): boolean {
  switch (parent?.type) {
    case 'AssignmentExpression':
    case 'AssignmentPattern':
    case 'ForInStatement':
    case 'ForOfStatement':
      return parent.left === member;
    case 'UpdateExpression':
    case 'ArrayPattern':
    case 'RestElement':
      return true;
    case 'Property':
      return parent.value === member && holder?.type === 'ObjectPattern';
    default:
      return false;
  }
}
