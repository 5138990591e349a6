// Modules that travel as code for one export, because the call reaches their state on two roads (roads.ts).
// While that export is written, nothing of them is an import. State of this module instead of the graph:
// `isProgram` needs it, and many callers of that have no graph. An export never awaits.

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

/** True: some module is copied, so cached results for functions do not hold. */
export function isCopying(): boolean {
  return urls.size > 0;
}
