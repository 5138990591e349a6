// Places where a text uses members of the global object: `globalThis.config`, `const { config } = globalThis`,
// `'config' in globalThis`, `Reflect.get(globalThis, 'config')`, `delete globalThis.config`, also under another
// name of the global object and by a variable with the key. What the program put there is no variable that V8
// shows, so each use becomes one of a slot, or of a cell where the call assigns the member.
// An assignment goes to the global object of where it runs as well, for modules that read it there.
// Not here: keys that are computed when the code runs, and the global object handed to other code.

import type { AnyNode } from 'acorn';
import { type Edit, opener, walk } from './cells.js';
import { treeOf } from './code.js';
import { analyse, type Binding, isConstant, isInside, type Reference, resolve } from './scope.js';

/** A key as the text has it. */
export interface Key {
  readonly text: string;
  /** True: `text` is a variable from outside, which holds it. */
  readonly isVariable: boolean;
}

/** The slot that a member has. */
export interface Ref {
  readonly slot: string;
  /** True: it holds `[value]`, or `[]` where there is no such member. */
  readonly isCell: boolean;
}

/** A place that uses members. */
export interface Use {
  readonly keys: readonly Key[];
  /** Asks only whether there is such a member. */
  readonly isHas: boolean;
  readonly writes: boolean;
  /** Assigns only where there is none: `globalThis.cache ??= new Map()`. */
  readonly makes: boolean;
  /** Calls the member with the global object as `this`. */
  readonly calls: boolean;
  /** Changes of the text, for keys that have a slot. `bind`: the name of `Function.prototype.bind`. */
  edits(refs: readonly (Ref | undefined)[], bind: string): Edit[];
}

/** A member that stands in the text, with the nodes around it. */
interface Place {
  readonly at: AnyNode;
  readonly parents: readonly AnyNode[];
  readonly text: string;
  readonly key: Key;
  /** Names the global object there. */
  readonly object: string;
}

/** The uses of members of the global object in `text`, which calls it by one of `names`. */
export function globalUses(text: string, names: readonly string[]): Use[] {
  const parsed = treeOf(text);
  if (parsed === undefined) return [];
  const { tree, node, offset } = parsed;
  const { references } = analyse(tree);
  const isOutside = ({ name, scope }: Reference): boolean => {
    const binding = resolve(scope, name);
    return binding === undefined || !isInside(binding.scope, node);
  };
  const outside = new Set(references.filter(isOutside).map(startOf));
  const objects = new Set(
    references.filter((each) => names.includes(each.name) && isOutside(each)).map(startOf),
  );
  addAliases(node, references, objects);
  const uses: Use[] = [];
  walk(node, [], (at, parents) => {
    const found = useAt(at, parents, text, offset, { objects, outside });
    if (found === undefined) return;
    const edits: Use['edits'] = (refs, bind) =>
      found.edits(refs, bind).map(({ start, end, text: by }) => {
        return { start: start - offset, end: end - offset, text: by };
      });
    uses.push({ ...found, edits });
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

/** Offsets of identifiers: of the global object, and of variables from outside. */
interface Names {
  readonly objects: ReadonlySet<number>;
  readonly outside: ReadonlySet<number>;
}

/** The use that `at` makes of members of the global object: a read, an assignment, or none. */
function useAt(
  at: AnyNode,
  parents: readonly AnyNode[],
  source: string,
  offset: number,
  { objects, outside }: Names,
): Use | undefined {
  const isGlobal = (node: AnyNode | null | undefined): node is AnyNode & { name: string } =>
    node?.type === 'Identifier' && objects.has(node.start);
  if (at.type === 'MemberExpression' && isGlobal(at.object)) {
    const key = keyOf(at.property, at.computed, outside);
    const text = source.slice(at.start - offset, at.end - offset);
    return key && memberUse({ at, parents, text, key, object: at.object.name });
  }
  if (at.type === 'BinaryExpression' && at.operator === 'in' && isGlobal(at.right)) {
    const key = keyOf(at.left, true, outside);
    return key && hasUse(at, parents, key);
  }
  if (at.type === 'CallExpression') {
    const [object, name] = at.arguments;
    const how = calledFor(at.callee, outside);
    if (how === undefined || name === undefined || !isGlobal(object)) return undefined;
    const key = keyOf(name, true, outside);
    if (key === undefined) return undefined;
    if (how === 'has') return hasUse(at, parents, key);
    if (how === 'value') return valueUse(at, key);
    return argumentUse(at, parents, key, object, name);
  }
  const [pattern, value] = destructured(at);
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
  return patternUse(at, parents, keys, value, hasRest);
}

const read = { isHas: false, writes: false, makes: false, calls: false };
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
  object: AnyNode & { name: string },
  name: AnyNode,
): Use {
  const { start, end } = at;
  const isStatement = parents.at(-1)?.type === 'ExpressionStatement';
  // One of them returns the object.
  const isReturned = !isStatement && at.type === 'CallExpression' && isObjectDefine(at.callee);
  const before = { start, end: start, text: `${opener(start, parents)}(` };
  const after = { start: end, end, text: `,${object.name})` };
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
  value: AnyNode & { name: string },
  hasRest: boolean,
): Use {
  const { start, end, name } = value;
  // The value of an assignment that is used is the global object itself.
  const isUsed =
    at.type === 'AssignmentExpression' && parents.at(-1)?.type !== 'ExpressionStatement';
  const before = { start: at.start, end: at.start, text: `${opener(at.start, parents)}(` };
  const after = { start: at.end, end: at.end, text: `,${name})` };
  return {
    ...read,
    keys,
    edits: (refs) => {
      const parts = keys.map(({ text, isVariable }, index) => {
        const [ref, key] = [refs[index], `[${isVariable ? text : JSON.stringify(text)}]`];
        return `${key}:${ref ? valueOf(ref) : `${name}${key}`}`;
      });
      const rest = hasRest ? `...${name},` : '';
      const edits = [{ start, end, text: `{${rest}${parts.join()}}` }];
      return isUsed ? [before, ...edits, after] : edits;
    },
  };
}

const calls: Readonly<Record<string, 'value' | 'has' | 'write'>> = {
  'Reflect.get': 'value',
  'Reflect.has': 'has',
  'Object.hasOwn': 'has',
  'Reflect.set': 'write',
  'Reflect.defineProperty': 'write',
  'Reflect.deleteProperty': 'write',
  'Object.defineProperty': 'write',
};

/** The use that a function of the language makes of an object and a key; `undefined`: none. */
function calledFor(callee: AnyNode, outside: ReadonlySet<number>) {
  if (callee.type !== 'MemberExpression' || callee.computed) return undefined;
  const { object, property } = callee;
  if (object.type !== 'Identifier' || property.type !== 'Identifier') return undefined;
  const name = `${object.name}.${property.name}`;
  return outside.has(object.start) && Object.hasOwn(calls, name) ? calls[name] : undefined;
}

/** The pattern that `at` fills, and what with. */
function destructured(
  at: AnyNode,
): readonly [pattern?: AnyNode, value?: AnyNode | null | undefined] {
  if (at.type === 'VariableDeclarator') return [at.id, at.init];
  const isAssignment = at.type === 'AssignmentExpression' || at.type === 'AssignmentPattern';
  return isAssignment ? [at.left, at.right] : [];
}

function keyOf(node: AnyNode, isComputed: boolean, outside: ReadonlySet<number>): Key | undefined {
  if (node.type === 'Identifier') {
    if (!isComputed) return { text: node.name, isVariable: false };
    return outside.has(node.start) ? { text: node.name, isVariable: true } : undefined;
  }
  const isName = node.type === 'Literal' && typeof node.value === 'string';
  return isName ? { text: String(node.value), isVariable: false } : undefined;
}

/** True: `parent` calls `member`, which is `this` to it then. */
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
