// Finds the expressions of a text that are the global object: its names, constants that hold it, its members
// that are itself (`globalThis.window`). Also the tests by which libraries find it, as far as the text and
// the globals of the program decide them: `typeof self !== 'undefined' ? self : this`.
// Not here: the use of it (global-uses.ts), variables that are assigned later.

import type { AnyNode, Identifier } from 'acorn';
import { type Expression, isNamed, type TextNames } from './text-names.js';

/** The meaning of the names of a text at home. */
export interface GlobalNames {
  /** Free names that are the global object. */
  readonly objects: readonly string[];
  /** Members of the global object that are itself. */
  readonly members: readonly string[];
  /** Free names without a value. */
  readonly absent: readonly string[];
}

/** The global object, by an expression for it; a value that is true or false in a test. */
type Verdict = { readonly object: string } | boolean | undefined;

export class GlobalObjects {
  readonly #names: TextNames;
  readonly #globals: GlobalNames;
  readonly #textOf: (node: AnyNode) => string;
  /** Constants whose value is being resolved. */
  readonly #visited = new Set<AnyNode>();

  constructor(names: TextNames, globals: GlobalNames, textOf: (node: AnyNode) => string) {
    this.#names = names;
    this.#globals = globals;
    this.#textOf = textOf;
  }

  /** An expression without effects for the global object, where `node` is that. */
  find(node: Expression): string | undefined {
    const verdict = this.#verdict(node);
    return typeof verdict === 'object' ? verdict.object : undefined;
  }

  #verdict(node: Expression): Verdict {
    switch (node?.type) {
      case 'Identifier':
        return this.#identifier(node);
      case 'MemberExpression': {
        const object = this.find(node.object);
        const isOne = this.#globals.members.some((name) => isMember(node, name));
        return object !== undefined && isOne ? { object } : undefined;
      }
      case 'ChainExpression':
        return this.#verdict(node.expression);
      case 'ConditionalExpression': {
        const test = this.#test(node.test);
        if (test !== undefined) return this.#verdict(test ? node.consequent : node.alternate);
        const [one, other] = [this.#verdict(node.consequent), this.#verdict(node.alternate)];
        return typeof one === 'object' && typeof other === 'object' ? one : undefined;
      }
      case 'LogicalExpression':
        return this.#logical(node.operator, node.left, node.right);
      case 'UnaryExpression': {
        const test = node.operator === '!' ? this.#test(node.argument) : undefined;
        return test === undefined ? undefined : !test;
      }
      case 'BinaryExpression':
        return this.#comparison(node.operator, node.left, node.right);
      case 'CallExpression': {
        const isReturned = node.arguments.length === 0 && this.#returnsThis(node.callee);
        return isReturned ? { object: this.#textOf(node) } : undefined;
      }
      default:
        return undefined;
    }
  }

  #identifier(node: Identifier): Verdict {
    const { name } = node;
    if (this.#names.isOutside(node)) {
      if (this.#globals.objects.includes(name)) return { object: name };
      return name === 'undefined' ? false : undefined;
    }
    const value = this.#names.valueOf(node);
    if (value === undefined || this.#visited.has(value)) return undefined;
    this.#visited.add(value);
    const verdict = this.#verdict(value);
    this.#visited.delete(value);
    return typeof verdict === 'object' ? { object: name } : verdict;
  }

  /** True or false, as a condition takes it. */
  #test(node: Expression): boolean | undefined {
    const verdict = this.#verdict(node);
    return typeof verdict === 'object' ? true : verdict;
  }

  #logical(operator: string, left: AnyNode, right: AnyNode): Verdict {
    const verdict = this.#verdict(left);
    const test = typeof verdict === 'object' ? true : verdict;
    // `false` may be `undefined` as well, which `??` distinguishes.
    if (operator === '??') return typeof verdict === 'object' ? verdict : undefined;
    if (test === undefined) return undefined;
    return test === (operator === '&&') ? this.#verdict(right) : verdict;
  }

  /** `typeof self !== 'undefined'`, `global.Object === Object`. */
  #comparison(operator: string, left: AnyNode, right: AnyNode): boolean | undefined {
    const sign = /^([=!])==?$/.exec(operator)?.[1];
    if (sign === undefined) return undefined;
    const isSame = this.#isSame(left, right) ?? this.#isSame(right, left);
    return isSame === undefined ? undefined : isSame === (sign === '=');
  }

  #isSame(left: AnyNode, right: AnyNode): boolean | undefined {
    if (left.type === 'UnaryExpression' && left.operator === 'typeof') {
      const type = this.#typeOf(left.argument);
      return type && right.type === 'Literal' ? type === right.value : undefined;
    }
    if (left.type !== 'MemberExpression' || this.find(left.object) === undefined) return undefined;
    if (isMember(left, 'Object') && this.#names.isOutside(right, 'Object')) return true;
    return this.find(left) !== undefined && this.find(right) !== undefined ? true : undefined;
  }

  #typeOf(node: AnyNode): string | undefined {
    if (this.find(node) !== undefined) return 'object';
    const isAbsent = this.#names.isOutside(node) && this.#globals.absent.includes(node.name);
    return isAbsent ? 'undefined' : undefined;
  }

  /** `Function('return this')` */
  #returnsThis(node: AnyNode): boolean {
    if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return false;
    const [text] = node.arguments;
    return (
      this.#names.isOutside(node.callee, 'Function') &&
      text?.type === 'Literal' &&
      /^return this;?$/.test(String(text.value))
    );
  }
}

function isMember(node: AnyNode & { type: 'MemberExpression' }, name: string): boolean {
  return !node.computed && isNamed(node.property, name);
}
