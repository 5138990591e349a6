// Output of the loops in threads, on its way through the main thread to the supervisor.

import type { Worker } from 'node:worker_threads';
import { LineSplitter, markedLine } from '../output/lines.js';

/** Passes the lines of a loop on to the output of this process, each with the index of the loop. */
export function markOutput(worker: Worker, loop: number): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const splitter = new LineSplitter((line) => process[name].write(markedLine(loop, line)));
    worker[name].on('data', (bytes: Buffer) => splitter.write(bytes));
    worker[name].once('end', () => splitter.end());
  }
}

/** Prints the stack of an error that ended a loop, as a line of that loop each. */
export function markStack(stack: string, loop: number): void {
  for (const line of stack.split('\n')) process.stderr.write(markedLine(loop, line));
}

/** A process that drains after the end of its supervisor prints to nobody. */
export function ignoreLostOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}
