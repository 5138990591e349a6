// Places where a text lists the global object: `{ ...globalThis }`, `Object.keys(globalThis)`, `for (… in
// globalThis)`, or fills it from another object: `Object.assign(globalThis, { … })`.
// Not here: single members (global-uses.ts).

import type { AnyNode } from 'acorn';
import type { Listing } from '../closures/global-guard.js';
import type { TextNames } from './text-names.js';

/** The global object in a text from `start` to `end`, or an object whose members are copied into it. */
export interface List {
  readonly start: number;
  readonly end: number;
  readonly what: Listing;
  /** Expressions for keys that are left out. */
  readonly except: readonly string[];
}

const calls: Readonly<Record<string, Listing>> = {
  'Object.keys': 'texts',
  'Object.values': 'texts',
  'Object.entries': 'texts',
  'Object.getOwnPropertyNames': 'all',
  'Object.getOwnPropertySymbols': 'all',
  'Object.getOwnPropertyDescriptors': 'all',
  'Reflect.ownKeys': 'all',
};

/** The lists that `at` makes. */
export function listAt(
  at: AnyNode,
  names: TextNames,
  isGlobal: (node: AnyNode | undefined) => boolean,
): List[] {
  const list = ({ start, end }: AnyNode, what: List['what']): List[] => {
    return [{ start, end, what, except: [] }];
  };
  switch (at.type) {
    case 'ForInStatement':
      return isGlobal(at.right) ? list(at.right, 'texts') : [];
    case 'ObjectExpression':
      return at.properties.flatMap((each) =>
        each.type === 'SpreadElement' && isGlobal(each.argument)
          ? list(each.argument, 'members')
          : [],
      );
    case 'CallExpression': {
      const name = calleeName(at.callee, names);
      const [first, ...others] = at.arguments;
      if (first === undefined) return [];
      const what = Object.hasOwn(calls, name) ? calls[name] : undefined;
      if (what !== undefined) return isGlobal(first) ? list(first, what) : [];
      if (name !== 'Object.assign' && name !== 'Object.defineProperties') return [];
      const given = others.filter(({ type }) => type !== 'SpreadElement');
      if (isGlobal(first)) return given.flatMap((each) => list(each, 'source'));
      return given.filter(isGlobal).flatMap((each) => list(each, 'members'));
    }
    default:
      return [];
  }
}

/** `Object.keys`, of the language; '' for other functions. */
function calleeName(callee: AnyNode, names: TextNames): string {
  if (callee.type !== 'MemberExpression' || callee.computed) return '';
  const { object, property } = callee;
  if (!names.isOutside(object) || property.type !== 'Identifier') return '';
  return `${object.name}.${property.name}`;
}
