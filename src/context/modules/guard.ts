// Prevents a worker from loading the program: by an `import()` of a task, or by a module that leads back to
// it where program.ts has not found that. It would run the program once more, with its servers and its own
// workers. Before Node 22.15 there are no hooks in the thread itself: imports by code that was not sent are
// not checked there.

import * as nodeModule from 'node:module';
import { pathToFileURL } from 'node:url';
import { CodedError } from '../../errors.js';
import { setMainFile } from './main-module.js';
import { isEntry, leadsToEntry, noteProgram, type ProgramFiles } from './program.js';
import { urlOfModule } from './resolve-module.js';

let isGuarded = false;

/** Refuses `urls`, the files of the program, and modules that load them, from now on in this thread. */
export function guardProgram({ urls, main }: ProgramFiles): void {
  noteProgram(urls);
  if (main !== '') setMainFile(main);
  if (isGuarded || urls.length === 0) return;
  isGuarded = true;
  if (typeof registerHooks === 'function') Reflect.apply(registerHooks, undefined, [{ load }]);
  else guardRequire();
}

const registerHooks: unknown = Reflect.get(nodeModule, 'registerHooks');

function load(url: string, context: unknown, next: (url: string, context: unknown) => unknown) {
  if (isEntry(url)) throw refusal(url);
  return next(url, context);
}

function guardRequire(): void {
  const load: unknown = Reflect.get(nodeModule.Module.prototype, 'load');
  if (typeof load !== 'function') return;
  Reflect.set(
    nodeModule.Module.prototype,
    'load',
    function (this: unknown, filename: string): unknown {
      const url = pathToFileURL(filename).href;
      if (isEntry(url)) throw refusal(url);
      return Reflect.apply(load, this, [filename]);
    },
  );
}

/** Throws where an `import()` of `specifier` in the module at `url` would load the program. */
export function checkImport(specifier: string, url: string): void {
  if (!isGuarded || registerHooks !== undefined) return;
  const file = urlOfModule(specifier, url);
  if (file !== undefined && leadsToEntry(file)) throw refusal(file);
}

function refusal(url: string): CodedError {
  const what = isEntry(url) ? 'the program itself' : 'a module that imports the program';
  return new CodedError(
    'TRANSFER_IMPORT_FAILED',
    `${url} is ${what}, which would run once more in the worker: put what the task needs into a module ` +
      'that does not import the program, or give it to the function as a variable or an argument',
  );
}
