// Keys of the global object as a text writes them: names, texts, registered symbols, constants that hold one.
// Any other is computed where the text runs.
// Not here: the use of the member (global-uses.ts), computed keys (global-guard.ts).

import type { AnyNode } from 'acorn';
import { keyExpression } from './shown-keys.js';
import { type Expression, isNamed, type TextNames } from './text-names.js';

/** A key as the text has it, from `start` to `end`. */
export interface Key {
  readonly start: number;
  readonly end: number;
  /** `undefined`: it is in a variable from outside, or computed. */
  readonly value: string | symbol | undefined;
  /** The variable from outside that holds it; '': none does. */
  readonly variable: string;
  /** True: the variable holds the argument of `Symbol.for`. */
  readonly isRegistered: boolean;
  /** An expression for it; '': it is computed. */
  readonly text: string;
}

/** Number of constants in a chain that are followed. */
const maxSteps = 4;

/** The key that `node` is; `isComputed`: it stands in brackets, or is an argument. */
export function keyAt(node: AnyNode, isComputed: boolean, names: TextNames): Key {
  const { start, end } = node;
  const range = { start, end, variable: '', isRegistered: false };
  if (node.type === 'Identifier' && !isComputed) {
    return { ...range, value: node.name, text: keyExpression(node.name) };
  }
  const held = heldBy(node, names);
  const given = registeredBy(held, names);
  const isRegistered = given !== undefined;
  const source = isRegistered ? heldBy(given, names) : held;
  if (source?.type === 'Identifier' && names.isOutside(source)) {
    // By the name that it has in this place.
    const text = node.type === 'Identifier' ? node.name : given && shownCall(given);
    return { ...range, value: undefined, variable: source.name, isRegistered, text: text ?? '' };
  }
  const constant = constantText(source);
  if (constant === undefined) return { ...range, value: undefined, text: '' };
  const value = isRegistered ? Symbol.for(constant) : constant;
  return { ...range, value, text: keyExpression(value) };
}

function shownCall(given: AnyNode): string | undefined {
  return given.type === 'Identifier' ? `Symbol.for(${given.name})` : undefined;
}

/** The expression that `node` holds: itself, where it is no constant of the text. */
function heldBy(node: Expression, names: TextNames): Expression {
  let held = node;
  for (let step = 0; step < maxSteps && held?.type === 'Identifier'; step += 1) {
    held = names.valueOf(held) ?? held;
  }
  return held;
}

/** The argument of a call of `Symbol.for`; `undefined`: `node` is no such call. */
function registeredBy(node: Expression, names: TextNames): AnyNode | undefined {
  if (node?.type !== 'CallExpression' || node.arguments.length !== 1) return undefined;
  const { callee } = node;
  const isRegistered =
    callee.type === 'MemberExpression' &&
    !callee.computed &&
    names.isOutside(callee.object, 'Symbol') &&
    isNamed(callee.property, 'for');
  return isRegistered ? node.arguments[0] : undefined;
}

/** The constant text that `node` evaluates to. */
function constantText(node: Expression): string | undefined {
  if (node?.type === 'TemplateLiteral') {
    return node.quasis.length === 1 ? (node.quasis[0]?.value.cooked ?? undefined) : undefined;
  }
  return node?.type === 'Literal' && !('regex' in node) ? String(node.value) : undefined;
}
