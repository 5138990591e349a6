// The limit of V8's heap of a program that does not tell it, as far as it follows from how it was started.
// Not here: what threads tell that use manycore (doctor-looks.ts).

import { getHeapStatistics } from 'node:v8';
import { nodeProcess } from '../blocking-pool/index.js';
import { textOf } from '../proc/index.js';

const limitFlag = /--max[-_]old[-_]space[-_]size=(\d+)/g;

/** In MiB; the last one counts. */
function limitIn(flags: string): number | undefined {
  const megabytes = [...flags.matchAll(limitFlag)].at(-1)?.[1];
  return megabytes === undefined ? undefined : Number(megabytes);
}

export interface HeapLimit {
  readonly bytes: number;
  /** Where it is from, for people. */
  readonly from: string;
}

/** From its flags, else ours where it runs the same Node and neither has any; `undefined` for others. */
export function heapLimitFromOutside(pid: number, folder: string): HeapLimit | undefined {
  const options = /(?:^|\0)NODE_OPTIONS=([^\0]*)/.exec(textOf(`${folder}/environ`))?.[1] ?? '';
  for (const [text, from] of [
    [flagsOf(pid, folder), '--max-old-space-size'],
    [options, 'NODE_OPTIONS'],
  ] as const) {
    const megabytes = limitIn(text);
    if (megabytes !== undefined) return { bytes: megabytes * 1024 ** 2, from };
  }
  return defaultLimit(pid, folder);
}

/** Nobody knows it of a process of a server, which may have flags from its configuration. */
function defaultLimit(pid: number, folder: string): HeapLimit | undefined {
  const isOurNode = nodeProcess(pid).executable === nodeProcess().executable;
  const ownFlags = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  const isPlain = !hasNamedItself(textOf(`${folder}/cmdline`));
  const isKnown = isOurNode && isPlain && limitIn(ownFlags) === undefined;
  return isKnown
    ? { bytes: getHeapStatistics().heap_size_limit, from: "Node's default" }
    : undefined;
}

function hasNamedItself(commandLine: string): boolean {
  return commandLine.startsWith('manycore ');
}

/** A program that has named itself has written over its flags: a server's process has its parent's. */
function flagsOf(pid: number, folder: string): string {
  const own = textOf(`${folder}/cmdline`);
  if (!hasNamedItself(own)) return own;
  const parent = /^PPid:\s*(\d+)$/m.exec(textOf(`${folder}/status`))?.[1] ?? String(pid);
  return textOf(`/proc/${parent}/cmdline`);
}
