// The members of a class by its text, and the treatment of each when the text is evaluated again. A static
// field or block has run once, at home: it is not run again, and its results travel as properties. Names in
// brackets are read from the class, because V8 keeps no variable for them.
// Not here: later differences of the class from its text (classes.ts).

import type { AnyNode } from 'acorn';
import type { ClassNode } from './scope.js';

/** A method, accessor or field of a class. Offsets are half-open and count from the class's text. */
export interface Member {
  readonly isStatic: boolean;
  readonly kind: 'method' | 'get' | 'set' | 'field';
  /** `undefined`: the text does not contain it. */
  readonly key: string | symbol | undefined;
  /** The slot for the key, where the text does not contain it. */
  readonly slot: string;
  /** Range that `Function.prototype.toString` returns for its function. */
  readonly start: number;
  readonly end: number;
  /** Position that V8 reports for its function: its `(`, or anywhere in the value of a field. */
  readonly anchor: number;
  /** The `name` that its text gives, `undefined` where that comes from the key; then its `length`. */
  readonly givenName: string | undefined;
  readonly givenLength: number;
}

/** A piece of the text that is not evaluated again. `slot`: the name that replaces it. */
export interface Gone {
  readonly start: number;
  readonly end: number;
  readonly kind: 'heritage' | 'key' | 'blank' | 'value';
  readonly slot: string;
}

/** A computed key of an instance field: evaluated again, because V8 keeps it in an unreadable place. */
export interface FieldKey {
  readonly start: number;
  readonly end: number;
  /** Variables in its expression. */
  readonly names: readonly string[];
  /** True: it has the same value again while its variables do. */
  readonly isStable: boolean;
}

export interface ClassText {
  readonly members: readonly Member[];
  readonly gone: readonly Gone[];
  /** Private static fields whose values are read and set by code at the end of the body. */
  readonly privateStatics: readonly string[];
  readonly fieldKeys: readonly FieldKey[];
  /** Offset of the `}` of the body. */
  readonly bodyEnd: number;
}

type MemberNode = ClassNode['body']['body'][number];
type NamedNode = Exclude<MemberNode, { type: 'StaticBlock' }>;

/** Reads the text of a class; `offset` is where the text begins in the tree. */
export function readClass(
  node: ClassNode,
  offset: number,
  freshName: (wanted: string) => string,
): ClassText {
  const members: Member[] = [];
  const gone: Gone[] = [];
  const privateStatics: string[] = [];
  const fieldKeys: FieldKey[] = [];
  const add = (from: { start: number; end: number }, kind: Gone['kind'], slot = ''): void => {
    gone.push({ start: from.start - offset, end: from.end - offset, kind, slot });
  };
  const heritage = node.superClass;
  if (heritage && heritage.type !== 'Identifier' && heritage.type !== 'Literal') {
    add(heritage, 'heritage', freshName('base'));
  }
  for (const [index, member] of node.body.body.entries()) {
    if (member.type === 'StaticBlock') {
      add(member, 'blank');
      continue;
    }
    const isField = member.type === 'PropertyDefinition';
    if (member.key.type === 'PrivateIdentifier') {
      if (!isField || !member.static || isFunction(member.value)) continue;
      privateStatics.push(member.key.name);
      if (member.value) add({ start: member.key.end, end: member.value.end }, 'value');
      continue;
    }
    if (member.type === 'MethodDefinition' && member.kind === 'constructor') continue;
    if (isField && !member.static) {
      if (member.computed) fieldKeys.push(fieldKeyOf(member.key, offset));
      continue;
    }
    if (isField && !(isFunction(member.value) && keyOf(member) !== undefined)) {
      add(member, 'blank');
      continue;
    }
    const key = keyOf(member);
    const slot = key === undefined ? freshName(`k${index}`) : '';
    if (key === undefined) add(member.key, 'key', slot);
    members.push(memberOf(member, key, slot, offset));
  }
  return { members, gone, privateStatics, fieldKeys, bodyEnd: node.body.end - 1 - offset };
}

function memberOf(
  node: NamedNode,
  key: string | symbol | undefined,
  slot: string,
  offset: number,
): Member {
  const { value } = node;
  if (node.type === 'PropertyDefinition' && value) {
    const [start, end] = [value.start - offset, value.end - offset];
    const givenName = value.type === 'FunctionExpression' ? value.id?.name : undefined;
    const givenLength = 'params' in value ? lengthOf(value.params) : 0;
    return {
      isStatic: true,
      kind: 'field',
      key,
      slot,
      start,
      end,
      anchor: start,
      givenName,
      givenLength,
    };
  }
  const kind = node.type === 'MethodDefinition' && isAccessorKind(node.kind) ? node.kind : 'method';
  return {
    isStatic: node.static,
    kind,
    key,
    slot,
    start: node.start - offset,
    end: node.end - offset,
    anchor: (value?.start ?? node.start) - offset,
    givenName: undefined,
    givenLength: value && 'params' in value ? lengthOf(value.params) : 0,
  };
}

/** The `length` of a function with these parameters. */
export function lengthOf(params: readonly AnyNode[]): number {
  const end = params.findIndex(
    ({ type }) => type === 'AssignmentPattern' || type === 'RestElement',
  );
  return end < 0 ? params.length : end;
}

function fieldKeyOf(node: AnyNode, offset: number): FieldKey {
  const names: string[] = [];
  const isStable = (part: AnyNode): boolean => {
    switch (part.type) {
      case 'Literal':
        return true;
      case 'Identifier':
        names.push(part.name);
        return true;
      case 'TemplateLiteral':
        return part.expressions.every(isStable);
      case 'BinaryExpression':
        return isStable(part.left) && isStable(part.right);
      case 'MemberExpression':
        return isStable(part.object) && (!part.computed || isStable(part.property));
      case 'CallExpression':
        return isSymbolFor(part.callee) && part.arguments.every(isStable);
      default:
        return false;
    }
  };
  return { start: node.start - offset, end: node.end - offset, isStable: isStable(node), names };
}

function isSymbolFor(node: AnyNode): boolean {
  return (
    node.type === 'MemberExpression' &&
    node.object.type === 'Identifier' &&
    node.object.name === 'Symbol' &&
    node.property.type === 'Identifier' &&
    node.property.name === 'for'
  );
}

function isAccessorKind(kind: string): kind is 'get' | 'set' {
  return kind === 'get' || kind === 'set';
}

/** True: evaluating it does nothing but make a function. */
function isFunction(node: AnyNode | null | undefined): boolean {
  return node?.type === 'ArrowFunctionExpression' || node?.type === 'FunctionExpression';
}

/** The key of a member, where its text alone determines it. */
function keyOf({ key, computed }: NamedNode): string | symbol | undefined {
  if (!computed && key.type === 'Identifier') return key.name;
  if (key.type === 'Literal' && !(key.value instanceof RegExp)) return String(key.value);
  return undefined;
}
