// The exports of a module that esbuild made CommonJS (tsx, tsup): getters `() => from[key]` copy those of an
// inner object onto `module.exports`. The text of such a getter names nothing, and calling it might run a
// getter of the user. So the inspector reads the object from its scope.

import * as types from 'node:util/types';
import { sourceText } from '../../lib/index.js';
import { canInspect, inspectSelf } from '../closures/inspector.js';
import type { AnyFunction } from '../types.js';

const copyingGetter = /^\(\)\s*=>\s*([\w$]+)\[([\w$]+)\]$/;

/** Source objects by exports, in order. Reading one costs 0.1 ms, so one serves all its names. */
const sources = new WeakMap<object, object[]>();

/** The object whose property `name` the getter of `exports` returns; `undefined`: it is no such getter. */
export function copiedFrom(exports: object, name: string, get: AnyFunction): object | undefined {
  const match = copyingGetter.exec(sourceText(get));
  if (match === null || !canInspect()) return undefined;
  const known = sources.get(exports) ?? [];
  const found = known.find((source) => Object.hasOwn(source, name));
  if (found !== undefined) return found;
  const [, from = '', key = ''] = match;
  const { scopes } = inspectSelf().capture(get);
  const valueOf = (variable: string): unknown => {
    const scope = scopes.find((each) => Object.hasOwn(each, variable));
    return scope && Reflect.get(scope, variable);
  };
  const source = valueOf(from);
  if (typeof source !== 'object' || source === null || types.isProxy(source)) return undefined;
  if (valueOf(key) !== name || !Object.hasOwn(source, name)) return undefined;
  sources.set(exports, [...known, source]);
  return source;
}
