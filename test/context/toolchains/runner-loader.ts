// A loader of CommonJS modules as Jest has one: for a context of node:vm, and with a table of its own.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';

interface LoaderOptions {
  /** The text of a module that was compiled. */
  readonly textOf?: (file: string) => string | undefined;
  /** Called for each `require()`, with its specifier; returns the result to use instead, or throws. */
  readonly replace?: (specifier: string) => unknown;
}

/** Loads CommonJS modules into `context`, into a table of its own; an ES module is refused as by Jest. */
export function loaderFor(
  context: vm.Context,
  { textOf = () => undefined, replace = () => undefined }: LoaderOptions = {},
): (file: string) => NodeRequire {
  const cache: Record<string, { exports: unknown; loaded: boolean }> = {};
  const load = (file: string): unknown => {
    const known = cache[file];
    if (known !== undefined) return known.exports;
    const module: { exports: unknown; loaded: boolean } = { exports: {}, loaded: true };
    cache[file] = module;
    const parameters = ['module', 'exports', 'require', '__filename', '__dirname'];
    const options = { filename: file, parsingContext: context };
    const text = textOf(file) ?? readFileSync(file, 'utf8');
    const body: unknown = vm.compileFunction(text, parameters, options);
    assert.ok(typeof body === 'function');
    const given = [module, module.exports, requireFrom(file), file, dirname(file)];
    Reflect.apply(body, undefined, given);
    return module.exports;
  };
  const requireFrom = (from: string | URL): NodeRequire => {
    const file = String(from).startsWith('file:') ? fileURLToPath(from) : String(from);
    const fromNode = createRequire(file);
    const resolve = (specifier: string): string =>
      specifier.startsWith('.') ? join(dirname(file), specifier) : specifier;
    const require = (specifier: string): unknown => {
      const replaced = replace(specifier);
      if (replaced !== undefined) return replaced;
      if (/^(?:node:)?module$/.test(specifier))
        return { ...nodeModule, createRequire: requireFrom };
      if (isBuiltin(specifier) || /^[^./]|\.node$/.test(specifier)) return fromNode(specifier);
      if (specifier.endsWith('.cjs') || textOf(resolve(specifier)) !== undefined)
        return load(resolve(specifier));
      throw Object.assign(new Error('Must use import'), { code: 'ERR_REQUIRE_ESM' });
    };
    const parts = { cache, resolve: Object.assign(resolve, fromNode.resolve), main: undefined };
    return Object.assign(require, { ...parts, extensions: fromNode.extensions }) as NodeRequire;
  };
  return requireFrom;
}
