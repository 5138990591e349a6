// The modules of CommonJS in a worker, which loads no file for them: `module` of code that was sent, and the
// program's own behind `require.main`.
// Not here: `require` itself.

import { Module } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineOwn } from '../../lib/index.js';

/** The file of the program that Node runs as CommonJS; `undefined`: it is none, or an ES module. */
export function mainFile(): string | undefined {
  return process.mainModule?.filename;
}

/**
 * Gives each `require` of this thread the `main` of the program whose file is `filename`. No code has it as
 * its own `module`: a worker is not the program.
 */
export function setMainFile(filename: string): void {
  process.mainModule ??= moduleOf(filename, '.', null);
}

/** `module` of code in the file at `url`. */
export function moduleAt(url: string): Module {
  const filename = url.startsWith('file:') ? fileURLToPath(url) : url;
  const main = process.mainModule;
  if (main?.filename === filename) return moduleOf(filename, '.', null);
  return moduleOf(filename, filename, main);
}

function moduleOf(filename: string, id: string, parent: object | null | undefined): Module {
  const path = dirname(filename);
  const find: unknown = Reflect.get(Module, '_nodeModulePaths');
  const paths: unknown = typeof find === 'function' ? Reflect.apply(find, Module, [path]) : [];
  const made = Object.assign(new Module(id), { filename, path, paths, loaded: true });
  // Set as an own property: that of the prototype warns, and a parent in the constructor gets a child.
  return defineOwn(made, 'parent', { value: parent, writable: true, configurable: true });
}
