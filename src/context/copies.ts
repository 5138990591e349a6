// Modules that travel as code for one export, because the call meets their state on two roads (roads.ts): as
// long as that export is written, nothing of them is an import. A variable of this module and no part of the graph,
// because `isProgram` needs it, which many functions call that know no graph. An export never waits.

let urls: ReadonlySet<string> = new Set();

/** Runs `body`, in which the modules at `copied` have no names. */
export function copying<T>(copied: ReadonlySet<string>, body: () => T): T {
  const outer = urls;
  urls = copied;
  try {
    return body();
  } finally {
    urls = outer;
  }
}

export function isCopied(url: string): boolean {
  return urls.size > 0 && urls.has(url);
}

/** True: some module is copied, so what was found of functions before does not hold. */
export function isCopying(): boolean {
  return urls.size > 0;
}
