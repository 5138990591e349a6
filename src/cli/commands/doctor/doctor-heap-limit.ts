// Infers the limit of V8's heap from the way a program was started, for programs that do not report it; and the
// part of a limit that is for young objects, which none reports. Not here: limits reported by threads that use manycore (doctor-samples.ts).

import { once } from 'node:events';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { nodeProcess } from '../../../blocking-pool/index.js';
import { textOf } from '../../../proc/index.js';

const limitFlag = /--max[-_]old[-_]space[-_]size=(\d+)/g;

/** Limit in MiB; of several flags the last one counts. */
function limitIn(flags: string): number | undefined {
  const megabytes = [...flags.matchAll(limitFlag)].at(-1)?.[1];
  return megabytes === undefined ? undefined : Number(megabytes);
}

export interface HeapLimit {
  readonly bytes: number;
  /** Origin of the limit, for the report. */
  readonly from: string;
}

/** The limit by its flags, or our own when it runs the same Node and neither has flags; else `undefined`. */
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

/**
 * The default limit of Node. `undefined` for a server process, which may have flags from its configuration.
 */
function defaultLimit(pid: number, folder: string): HeapLimit | undefined {
  const isOurNode = nodeProcess(pid).executable === nodeProcess().executable;
  const ownFlags = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  const isPlain = !hasNamedItself(textOf(`${folder}/cmdline`));
  const isKnown = isOurNode && isPlain && limitIn(ownFlags) === undefined;
  return isKnown
    ? { bytes: getHeapStatistics().heap_size_limit, from: "Node's default" }
    : undefined;
}

const youngSizeProgram = `
  const { parentPort, resourceLimits } = require('node:worker_threads');
  parentPort.postMessage(resourceLimits.maxYoungGenerationSizeMb);
`;

/**
 * Resolves to the default part of a heap limit for young objects, in the Node that runs here: 48 to 192 MiB by
 * version. Starts a thread, since a main thread cannot read it.
 */
export async function youngHeapBytes(): Promise<number> {
  const [megabytes] = await once(new Worker(youngSizeProgram, { eval: true }), 'message');
  return Number(megabytes) * 1024 ** 2;
}

function hasNamedItself(commandLine: string): boolean {
  return commandLine.startsWith('manycore ');
}

/**
 * Flags of a process. A process with its own title has overwritten them; a server process has its parent's
 * flags.
 */
function flagsOf(pid: number, folder: string): string {
  const own = textOf(`${folder}/cmdline`);
  if (!hasNamedItself(own)) return own;
  const parent = /^PPid:\s*(\d+)$/m.exec(textOf(`${folder}/status`))?.[1] ?? String(pid);
  return textOf(`/proc/${parent}/cmdline`);
}
