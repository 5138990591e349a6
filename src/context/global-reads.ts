// Members of the global object that a text reads: `globalThis.config`. What the program put there is no
// variable that V8 shows, so each read becomes a slot, as `config` alone is one. A text that assigns
// such a member means the global object of where it runs, and is left as it is.

import type { AnyNode } from 'acorn';
import { type Edit, walk } from './cells.js';
import { type Code, treeOf } from './code.js';
import { analyse, isInside, resolve } from './scope.js';

const names = ['globalThis', 'global'];
const known = new WeakMap<Code, ReadonlyMap<string, readonly Edit[]>>();

/** By name of the member: what to put into the text instead, `text` being the name of its slot. */
export function globalReads(code: Code): ReadonlyMap<string, readonly Edit[]> {
  let reads = known.get(code);
  if (reads === undefined) {
    reads = code.freeNames.some((name) => names.includes(name)) ? readsIn(code) : new Map();
    known.set(code, reads);
  }
  return reads;
}

function readsIn({ text, names: fresh }: Code): ReadonlyMap<string, readonly Edit[]> {
  const parsed = treeOf(text);
  if (parsed === undefined) return new Map();
  const { tree, node, offset } = parsed;
  const uses = new Set<number>();
  for (const { name, start, scope } of analyse(tree).references) {
    const binding = names.includes(name) ? resolve(scope, name) : undefined;
    if (names.includes(name) && (binding === undefined || !isInside(binding.scope, node))) {
      uses.add(start);
    }
  }
  const reads = new Map<string, Edit[]>();
  const written = new Set<string>();
  walk(node, [], (at, parents) => {
    if (at.type !== 'MemberExpression' || !uses.has(at.object.start)) return;
    if (at.object.type !== 'Identifier') return;
    const name = memberOf(at);
    if (name === undefined) return;
    if (isWritten(at, parents.at(-1))) written.add(name);
    const edits = reads.get(name) ?? [];
    edits.push({ start: at.start - offset, end: at.end - offset, text: `${fresh.prefix}_${name}` });
    reads.set(name, edits);
  });
  for (const name of written) reads.delete(name);
  return reads;
}

function memberOf({ computed, property }: Extract<AnyNode, { type: 'MemberExpression' }>) {
  if (!computed) return property.type === 'Identifier' ? property.name : undefined;
  const isName = property.type === 'Literal' && typeof property.value === 'string';
  return isName && /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(String(property.value))
    ? String(property.value)
    : undefined;
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
