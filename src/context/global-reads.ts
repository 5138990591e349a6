// Members of the global object that a text reads: `globalThis.config`, `const { config } = globalThis`,
// `'config' in globalThis`, `Reflect.get(globalThis, 'config')`, also under another name of the global object and
// by a variable with the key.
// What the program put there is no variable that V8 shows, so each read becomes a slot, as `config` alone
// is one. A text that assigns such a member means the global object of where it runs, and is left as it is.
// Not here: keys that are computed when the code runs, and the global object handed to other code.

import type { AnyNode } from 'acorn';
import { type Edit, walk } from './cells.js';
import { type Code, treeOf } from './code.js';
import type { Slot } from './describe.js';
import { analyse, type Binding, isConstant, isInside, type Reference, resolve } from './scope.js';

const globalNames = ['globalThis', 'global'];

/** A key as the text has it. */
interface Key {
  readonly text: string;
  /** True: `text` is a variable from outside, which holds it. */
  readonly isVariable: boolean;
}

/** A place that reads members, or assigns one. `[start, end)` of the text. */
interface Use {
  readonly how: 'value' | 'has' | 'pattern' | 'write';
  readonly keys: readonly Key[];
  readonly start: number;
  readonly end: number;
  /** Names the global object here. */
  readonly object: string;
  /** True for a pattern that takes all other members, too. */
  readonly hasRest?: boolean;
}

/** The meaning of a slot: a member, or that there is one. */
export interface GlobalMember {
  readonly slot: string;
  readonly name: string;
  readonly how: 'value' | 'has';
}

/** The reads of a text, with the names that their keys have now. */
export interface GlobalReads {
  readonly members: readonly GlobalMember[];
  /** Changes of the text for the `slots` that exist. */
  edits(slots: ReadonlySet<string>): Edit[];
}

const none: GlobalReads = { members: [], edits: () => [] };

/** By the names of the global object that it captured. */
const known = new WeakMap<Code, Map<string, readonly Use[]>>();

/** Reads of `global` in `code`, which captured `slots`. */
export function globalReads(code: Code, slots: readonly Slot[], global: object): GlobalReads {
  const fixed = slots.filter(({ name, cell }) => !code.writtenNames.has(name) && !cell);
  const aliases = fixed.filter(({ value }) => value === global).map(({ name }) => name);
  const names = [...globalNames.filter((name) => code.freeNames.includes(name)), ...aliases];
  if (names.length === 0) return none;
  const uses = usesIn(code, names);
  if (uses.length === 0) return none;
  const values = new Map(fixed.map(({ name, value }) => [name, value]));
  const nameOf = ({ text, isVariable }: Key): string => {
    const name = isVariable ? values.get(text) : text;
    return typeof name === 'string' && isVariableName(name) ? name : '';
  };
  return readsOf(uses, nameOf, code.names.prefix);
}

function readsOf(uses: readonly Use[], nameOf: (key: Key) => string, prefix: string): GlobalReads {
  const written = new Set(
    uses
      .filter(({ how }) => how === 'write')
      .flatMap(keysOf)
      .map(nameOf),
  );
  const members = new Map<string, GlobalMember>();
  const slotOf = (key: Key, how: GlobalMember['how']): string => {
    const name = nameOf(key);
    if (name === '' || written.has(name)) return '';
    const slot = how === 'has' ? `${prefix}in_${name}` : `${prefix}_${name}`;
    members.set(slot, { slot, name, how });
    return slot;
  };
  const reads = uses.flatMap((use) => {
    const { how } = use;
    if (how === 'write') return [];
    const slots = use.keys.map((key) => slotOf(key, how === 'has' ? how : 'value'));
    return [{ use, slots }];
  });
  return {
    members: [...members.values()],
    edits: (there) =>
      reads.flatMap(({ use, slots }) => {
        if (!slots.some((slot) => there.has(slot))) return [];
        const { start, end, keys, object, hasRest } = use;
        if (use.how !== 'pattern') return [{ start, end, text: slots[0] ?? '' }];
        const parts = keys.map(({ text, isVariable }, at) => {
          const [slot = '', key] = [slots[at], `[${isVariable ? text : JSON.stringify(text)}]`];
          return `${key}:${there.has(slot) ? slot : `${object}${key}`}`;
        });
        const rest = hasRest ? `...${object},` : '';
        return [{ start, end, text: `{${rest}${parts.join()}}` }];
      }),
  };
}

function keysOf({ keys }: Use): readonly Key[] {
  return keys;
}

function isVariableName(name: string): boolean {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
}

function usesIn(code: Code, names: readonly string[]): readonly Use[] {
  let byNames = known.get(code);
  if (byNames === undefined) {
    byNames = new Map();
    known.set(code, byNames);
  }
  const key = names.join();
  let uses = byNames.get(key);
  if (uses === undefined) {
    uses = findUses(code.text, names);
    byNames.set(key, uses);
  }
  return uses;
}

function findUses(text: string, names: readonly string[]): Use[] {
  const parsed = treeOf(text);
  if (parsed === undefined) return [];
  const { tree, node, offset } = parsed;
  const { references } = analyse(tree);
  const isOutside = ({ name, scope }: Reference): boolean => {
    const binding = resolve(scope, name);
    return binding === undefined || !isInside(binding.scope, node);
  };
  const outside = new Set(references.filter(isOutside).map(({ start }) => start));
  const objects = new Set(
    references.filter((each) => names.includes(each.name) && isOutside(each)).map(startOf),
  );
  addAliases(node, references, objects);
  const uses: Use[] = [];
  walk(node, [], (at, parents) => {
    const found = useAt(at, parents, objects, outside);
    if (found === undefined) return;
    uses.push({ ...found, start: found.start - offset, end: found.end - offset });
  });
  return uses;
}

function startOf({ start }: { readonly start: number }): number {
  return start;
}

/** Adds to `objects` where the text uses a constant of its own that is the global object. */
function addAliases(node: AnyNode, references: readonly Reference[], objects: Set<number>): void {
  const declared = new Set<number>();
  walk(node, [], (at) => {
    if (at.type !== 'VariableDeclarator' || at.id.type !== 'Identifier') return;
    if (at.init?.type === 'Identifier' && objects.has(at.init.start)) declared.add(at.id.start);
  });
  if (declared.size === 0) return;
  const isAlias = (binding: Binding | undefined): boolean =>
    binding !== undefined && declared.has(binding.start) && isConstant(binding);
  for (const { name, start, scope } of references) {
    if (isAlias(resolve(scope, name))) objects.add(start);
  }
}

/** The use that `at` makes of members of one of `objects`: a read, an assignment, or none. */
function useAt(
  at: AnyNode,
  parents: readonly AnyNode[],
  objects: ReadonlySet<number>,
  outside: ReadonlySet<number>,
): Use | undefined {
  const isGlobal = (node: AnyNode | null | undefined): node is AnyNode & { name: string } =>
    node?.type === 'Identifier' && objects.has(node.start);
  const { start, end } = at;
  if (at.type === 'MemberExpression' && isGlobal(at.object)) {
    const key = keyOf(at.property, at.computed, outside);
    const how = isWritten(at, parents.at(-1)) ? 'write' : 'value';
    return key && { how, keys: [key], start, end, object: at.object.name };
  }
  if (at.type === 'BinaryExpression' && at.operator === 'in' && isGlobal(at.right)) {
    const key = keyOf(at.left, true, outside);
    return key && { how: 'has', keys: [key], start, end, object: at.right.name };
  }
  if (at.type === 'CallExpression') {
    const [object, name] = at.arguments;
    const how = calledFor(at.callee, outside);
    if (how === undefined || name === undefined || !isGlobal(object)) return undefined;
    const key = keyOf(name, true, outside);
    return key && { how, keys: [key], start, end, object: object.name };
  }
  const [pattern, value] = destructured(at, parents.at(-1));
  if (pattern?.type !== 'ObjectPattern' || !isGlobal(value)) return undefined;
  const keys: Key[] = [];
  let hasRest = false;
  for (const property of pattern.properties) {
    if (property.type === 'RestElement') hasRest = true;
    else {
      const key = keyOf(property.key, property.computed, outside);
      if (key === undefined) return undefined;
      keys.push(key);
    }
  }
  return { how: 'pattern', keys, start: value.start, end: value.end, object: value.name, hasRest };
}

const calls: Readonly<Record<string, Use['how']>> = {
  'Reflect.get': 'value',
  'Reflect.has': 'has',
  'Object.hasOwn': 'has',
  'Reflect.set': 'write',
  'Reflect.defineProperty': 'write',
  'Reflect.deleteProperty': 'write',
  'Object.defineProperty': 'write',
};

/** The use that a function of the language makes of an object and a key; `undefined`: none. */
function calledFor(callee: AnyNode, outside: ReadonlySet<number>): Use['how'] | undefined {
  if (callee.type !== 'MemberExpression' || callee.computed) return undefined;
  const { object, property } = callee;
  if (object.type !== 'Identifier' || property.type !== 'Identifier') return undefined;
  const name = `${object.name}.${property.name}`;
  return outside.has(object.start) && Object.hasOwn(calls, name) ? calls[name] : undefined;
}

/** The pattern that `at` fills, and what with. */
function destructured(
  at: AnyNode,
  parent: AnyNode | undefined,
): readonly [pattern?: AnyNode, value?: AnyNode | null | undefined] {
  if (at.type === 'VariableDeclarator') return [at.id, at.init];
  if (at.type === 'AssignmentPattern') return [at.left, at.right];
  // The value of an assignment that is used is the global object itself.
  const isStatement = parent?.type === 'ExpressionStatement';
  return at.type === 'AssignmentExpression' && isStatement ? [at.left, at.right] : [];
}

function keyOf(node: AnyNode, isComputed: boolean, outside: ReadonlySet<number>): Key | undefined {
  if (node.type === 'Identifier') {
    if (!isComputed) return { text: node.name, isVariable: false };
    return outside.has(node.start) ? { text: node.name, isVariable: true } : undefined;
  }
  const isName = node.type === 'Literal' && typeof node.value === 'string';
  return isName ? { text: String(node.value), isVariable: false } : undefined;
}

function isWritten(member: AnyNode, parent: AnyNode | undefined): boolean {
  switch (parent?.type) {
    case 'AssignmentExpression':
    case 'ForInStatement':
    case 'ForOfStatement':
      return parent.left === member;
    case 'UpdateExpression':
    case 'AssignmentPattern':
    case 'ArrayPattern':
    case 'RestElement':
      return true;
    case 'UnaryExpression':
      return parent.operator === 'delete';
    default:
      return false;
  }
}
