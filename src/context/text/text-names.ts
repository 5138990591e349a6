// Names in the text of a function: which come from outside, and the values that its own constants hold from
// their declaration on.
// Not here: names in the source of a whole module (scope.ts, scripts.ts).

import type { AnyNode, Identifier } from 'acorn';
import { walk } from './cells.js';
import { analyse, type Binding, isConstant, isInside, resolve } from './scope.js';

/** An expression of a text; `undefined`: the text has none there. */
export type Expression = AnyNode | null | undefined;

export class TextNames {
  /** The binding of each name, by its offset; `undefined`: it comes from outside. */
  readonly #bindings = new Map<number, Binding | undefined>();
  /** Initialisers of variables, by the offset of the declaration. */
  readonly #values = new Map<number, AnyNode>();

  /** `node`: the function, inside `tree`. */
  constructor(tree: AnyNode, node: AnyNode) {
    for (const { name, start, scope } of analyse(tree).references) {
      const binding = resolve(scope, name);
      const isOwn = binding !== undefined && isInside(binding.scope, node);
      this.#bindings.set(start, isOwn ? binding : undefined);
    }
    walk(node, [], (at) => {
      if (at.type === 'VariableDeclarator') this.#note(at.id, at.init);
      else if (at.type === 'CallExpression') this.#noteParameters(at.callee, at.arguments);
    });
  }

  /** True: `node` is a variable from outside; `name`: the one of this name. */
  isOutside(node: Expression, name?: string): node is Identifier {
    if (node?.type !== 'Identifier' || (name !== undefined && node.name !== name)) return false;
    return this.#bindings.has(node.start) && this.#bindings.get(node.start) === undefined;
  }

  /** The value of the constant `node` of the text; `undefined`: it is no such constant. */
  valueOf(node: Identifier): AnyNode | undefined {
    const binding = this.#bindings.get(node.start);
    return binding && isConstant(binding) ? this.#values.get(binding.start) : undefined;
  }

  #note(id: AnyNode, value: Expression): void {
    if (id.type === 'Identifier' && value) this.#values.set(id.start, value);
  }

  /** Notes parameters of a function without a name that is called where it is written. */
  #noteParameters(callee: AnyNode, given: readonly AnyNode[]): void {
    const isCall = callee.type === 'MemberExpression' && isNamed(callee.property, 'call');
    const called = isCall ? callee.object : callee;
    const isFunction = called.type === 'FunctionExpression' && !called.id;
    if (!isFunction && called.type !== 'ArrowFunctionExpression') return;
    for (const [at, argument] of (isCall ? given.slice(1) : given).entries()) {
      const parameter = called.params[at];
      if (argument.type === 'SpreadElement' || parameter === undefined) return;
      this.#note(parameter, argument);
    }
  }
}

export function isNamed(node: AnyNode, name: string): boolean {
  return node.type === 'Identifier' && node.name === name;
}
