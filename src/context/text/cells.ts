// The text of a function in which some variables are cells: `[value]`, held by the variable itself, so that
// each use of `n` becomes `n[0]`. Applied only where functions share a variable that one of them assigns.
// Columns behind a use on its line are then those of the changed text.
// Not here: which variables are cells (sharing.ts).

import type { AnyNode } from 'acorn';
import { type Code, treeOf } from './code.js';
import { analyse, isInside, resolve } from './scope.js';

/** Replaces `[start, end)` of the text by `text`; an insertion where they are equal. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The edits of `code.text` for `names`, in no order. */
export function cellEdits({ text }: Code, names: ReadonlySet<string>): Edit[] {
  const parsed = names.size === 0 ? undefined : treeOf(text);
  if (parsed === undefined) return [];
  const { tree, node, offset } = parsed;
  const uses = new Set<number>();
  for (const { name, start, scope } of analyse(tree).references) {
    if (!names.has(name) || start < node.start || start >= node.end) continue;
    const binding = resolve(scope, name);
    if (binding === undefined || !isInside(binding.scope, node)) uses.add(start);
  }
  const edits: Edit[] = [];
  const edit = (start: number, end: number, by: string): void => {
    edits.push({ start: start - offset, end: end - offset, text: by });
  };
  walk(node, [], (at, parents) => {
    if (at.type === 'AssignmentExpression' && at.left.type === 'Identifier') {
      // An anonymous function takes its name from the variable that it is assigned to.
      if (uses.has(at.left.start) && isAnonymous(at.right)) {
        edit(at.right.start, at.right.start, `({${at.left.name}:`);
        edit(at.right.end, at.right.end, `}).${at.left.name}`);
      }
    }
    // A shorthand property has the name twice, as its key and its value.
    if (at.type !== 'Identifier' || !uses.delete(at.start)) return;
    edit(at.start, at.end, used(at.name, at.start, parents));
  });
  return edits;
}

function used(name: string, start: number, parents: readonly AnyNode[]): string {
  const parent = parents.at(-1);
  const holder = parent?.type === 'AssignmentPattern' ? parents.at(-2) : parent;
  if (holder?.type === 'Property' && holder.shorthand) return `${name}:${name}[0]`;
  const isCalled =
    (parent?.type === 'CallExpression' && parent.callee.start === start) ||
    (parent?.type === 'TaggedTemplateExpression' && parent.tag.start === start);
  if (!isCalled) return `${name}[0]`;
  // Not `n[0]()`, whose `this` would be the cell.
  return `${opener(start, parents)}(0,${name}[0])`;
}

/**
 * The text to put before a `(` that replaces what is at `start`. At the start of a statement the `(` would
 * continue a line before it that ends without a semicolon.
 */
export function opener(start: number, parents: readonly AnyNode[]): '' | ';' {
  const statement = parents.findLastIndex(({ type }) => type === 'ExpressionStatement');
  const list = parents[statement - 1]?.type ?? '';
  const isFirst = parents[statement]?.start === start && /Block|Program|SwitchCase/.test(list);
  return isFirst ? ';' : '';
}

function isAnonymous(node: AnyNode): boolean {
  if (node.type === 'ArrowFunctionExpression') return true;
  return (node.type === 'FunctionExpression' || node.type === 'ClassExpression') && !node.id;
}

/** Visits `node` and all nodes below it, each with its ancestors. */
export function walk(
  node: AnyNode,
  parents: AnyNode[],
  visit: (node: AnyNode, parents: readonly AnyNode[]) => void,
): void {
  visit(node, parents);
  parents.push(node);
  for (const part of Object.values(node)) {
    for (const child of Array.isArray(part) ? part : [part]) {
      if (isNode(child)) walk(child, parents, visit);
    }
  }
  parents.pop();
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}
