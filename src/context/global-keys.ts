// Keys of the global object as a text has them: names, texts, registered symbols, constants that hold one.
// Any other is computed where the text runs.
// Not here: what the text does with the member (global-uses.ts), computed keys (global-guard.ts).

import type { AnyNode } from 'acorn';
import { type Expression, isNamed, type TextNames } from './text-names.js';

/** A key as the text has it, from `start` to `end`. */
export interface Key {
  readonly start: number;
  readonly end: number;
  /** `undefined`: it is in a variable from outside, or computed. */
  readonly value: string | symbol | undefined;
  /** The variable from outside that holds it; '' : none does. */
  readonly variable: string;
  /** An expression for it; '' : it is computed. */
  readonly text: string;
}

/** Constants of constants that are followed. */
const maxSteps = 4;

/** The key that `node` is; `isComputed`: it stands in brackets, or is an argument. */
export function keyAt(node: AnyNode, isComputed: boolean, names: TextNames): Key {
  const range = { start: node.start, end: node.end, variable: '' };
  if (node.type === 'Identifier' && !isComputed) {
    return { ...range, value: node.name, text: quoted(node.name) };
  }
  const held = heldBy(node, names);
  const text = node.type === 'Identifier' ? node.name : '';
  if (held?.type === 'Identifier' && names.isOutside(held)) {
    return { ...range, value: undefined, variable: held.name, text };
  }
  const value = constantKey(held, names);
  return { ...range, value, text: value === undefined ? '' : expressionOf(value) };
}

function expressionOf(key: string | symbol): string {
  return typeof key === 'symbol' ? `Symbol.for(${quoted(key.description)})` : quoted(key);
}

function quoted(text = ''): string {
  return JSON.stringify(text);
}

/** What `node` holds: itself, where it is no constant of the text. */
function heldBy(node: Expression, names: TextNames): Expression {
  let held = node;
  for (let step = 0; step < maxSteps && held?.type === 'Identifier'; step += 1) {
    held = names.valueOf(held) ?? held;
  }
  return held;
}

/** The key that `node` is whenever it is evaluated. */
function constantKey(node: Expression, names: TextNames): string | symbol | undefined {
  switch (node?.type) {
    case 'Literal':
      return node.value instanceof RegExp ? undefined : String(node.value);
    case 'TemplateLiteral':
      return node.quasis.length === 1 ? (node.quasis[0]?.value.cooked ?? undefined) : undefined;
    case 'CallExpression': {
      const { callee, arguments: given } = node;
      const isRegistered =
        callee.type === 'MemberExpression' &&
        !callee.computed &&
        names.isOutside(callee.object, 'Symbol') &&
        isNamed(callee.property, 'for') &&
        given.length === 1;
      const key = heldBy(given[0], names);
      const isText = key?.type === 'Literal' || key?.type === 'TemplateLiteral';
      const name = isRegistered && isText ? constantKey(key, names) : undefined;
      return typeof name === 'string' ? Symbol.for(name) : undefined;
    }
    default:
      return undefined;
  }
}

/** Shows a global in messages. */
export function shownGlobal(key: string | symbol): string {
  if (typeof key === 'string' && isVariableName(key)) return key;
  const hasName = typeof key === 'string' || Symbol.keyFor(key) !== undefined;
  return `globalThis[${hasName ? expressionOf(key) : String(key)}]`;
}

export function isVariableName(name: string): boolean {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
}
