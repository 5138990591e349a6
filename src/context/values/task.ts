// A function named by its module and export. It travels as the two names, needs no inspector and no capture,
// and the module keeps its own state in each worker.

import { CodedError } from '../../errors.js';
import { jsonOf, messageOf } from '../../lib/index.js';
import { importerFor } from '../decode/recreate.js';
import { isEntry } from '../modules/program.js';
import type { AnyFunction } from '../types.js';

export interface TaskTarget {
  readonly url: string;
  readonly exportName: string;
}

const targets = new WeakMap<AnyFunction, TaskTarget>();

/**
 * Returns a function that calls the export `exportName` of the module at `moduleUrl`, in the worker that runs
 * it. `moduleUrl` is absolute (`import.meta.url`, `import.meta.resolve(…)`, `node:…`). Calling it imports the
 * module; rejects with `TRANSFER_IMPORT_FAILED` when that fails or the export is no function. The program
 * itself is `OPTION_INVALID`: a worker that imports it would run the program once more.
 */
export function task<F extends (...args: never[]) => unknown = (...args: unknown[]) => unknown>(
  moduleUrl: string | URL,
  exportName: string,
): (...args: Parameters<F>) => Promise<Awaited<ReturnType<F>>> {
  const url = String(moduleUrl);
  if (!URL.canParse(url)) {
    throw new CodedError(
      'OPTION_INVALID',
      `task() takes an absolute URL, not ${jsonOf(url)}: use import.meta.resolve(…) or ` +
        'new URL(…, import.meta.url)',
    );
  }
  if (isEntry(url)) {
    throw new CodedError(
      'OPTION_INVALID',
      `task() got the program itself, ${url}, which each worker would run again: put ` +
        `${String(exportName)} into a file of its own, or pass the function to run()`,
    );
  }
  if (typeof exportName !== 'string' || exportName === '') {
    throw new CodedError(
      'OPTION_INVALID',
      'task() takes the name of an export as its second argument',
    );
  }
  const call = async (...args: Parameters<F>): Promise<Awaited<ReturnType<F>>> => {
    const fn = await importExport(url, exportName);
    return Reflect.apply(fn, undefined, args);
  };
  targets.set(call, { url, exportName });
  return call;
}

export function taskTarget(fn: AnyFunction): TaskTarget | undefined {
  return targets.get(fn);
}

async function importExport(url: string, exportName: string): Promise<AnyFunction> {
  let namespace: unknown;
  try {
    namespace = await importerFor(url)(url);
  } catch (cause) {
    const why = isMissingItself(cause) ? 'there is no such file' : messageOf(cause);
    const text = `${url} cannot be imported here: ${why}`;
    throw new CodedError('TRANSFER_IMPORT_FAILED', text, { cause });
  }
  const fn: unknown =
    typeof namespace === 'object' && namespace !== null
      ? Reflect.get(namespace, exportName)
      : undefined;
  if (typeof fn !== 'function') {
    throw new CodedError(
      'TRANSFER_IMPORT_FAILED',
      `${url} exports no function ${jsonOf(exportName)}`,
    );
  }
  return fn;
}

/** True: no file was found, and it is not one that the module imports in turn. */
function isMissingItself(cause: unknown): boolean {
  const [, missing, importer] =
    /^Cannot find module '(.*)' imported from (.*)$/.exec(messageOf(cause)) ?? [];
  return missing !== undefined && missing === importer;
}
