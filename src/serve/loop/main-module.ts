// The program as the main module of its loop. `import()` loads an ES module with `import.meta.main` false, and no
// interface of Node says that a module is the entry. So the hook below, which is there for this one module, lets
// its text begin with the assignment. Not here: CommonJS programs (app.ts), which have an interface for it.

import { realpathSync } from 'node:fs';
import nodeModule from 'node:module';
import { pathToFileURL } from 'node:url';

type LoadHook = (
  url: string,
  context: unknown,
  next: (url: string, context: unknown) => { source?: unknown },
) => object;

/** Imports the program's ES module, in which `import.meta.main` is true where Node has that. */
export async function importMain(path: string): Promise<unknown> {
  const { href } = pathToFileURL(path);
  const unhook = markAsMain(new Set([href, pathToFileURL(realpathSync(path)).href]));
  try {
    return await import(href);
  } finally {
    unhook();
  }
}

/** Releases of Node without hooks in the same thread have no `import.meta.main` either. */
function markAsMain(urls: ReadonlySet<string>): () => void {
  const registerHooks: unknown = Reflect.get(nodeModule, 'registerHooks');
  if (typeof registerHooks !== 'function') return () => {};
  const load: LoadHook = (url, context, next) => {
    const loaded = next(url, context);
    if (!urls.has(url)) return loaded;
    return { ...loaded, source: markedSource(loaded.source) };
  };
  const hooks: unknown = Reflect.apply(registerHooks, nodeModule, [{ load }]);
  return () => void Reflect.apply(Reflect.get(Object(hooks), 'deregister'), hooks, []);
}

/** Leaves a text alone that does not ask, and the lines of one that does. */
function markedSource(source: unknown): unknown {
  const isBytes = source instanceof Uint8Array || source instanceof ArrayBuffer;
  const text = isBytes ? new TextDecoder().decode(source) : source;
  if (typeof text !== 'string' || !text.includes('import.meta.main')) return source;
  return text.replace(/^(#!.*\r?\n)?/, '$1import.meta.main=true;');
}
