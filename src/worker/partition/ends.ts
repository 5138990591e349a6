// The reasons of a sandbox's end.

import { Socket } from 'node:net';
import type { CodedError } from '../../errors.js';
import { unavailable } from './layers.js';
import type { FilledSandbox } from './options.js';
import { printable } from './own-output.js';

/** Exit code of `manycore-enter` for a step that failed. */
const refusedExitCode = 125;
/** More than `manycore-enter` writes. */
const maxStatusChars = 1000;

/** Resolves to the first part of what comes, at its end. */
export function textOf(stream: unknown): Promise<string> {
  if (!(stream instanceof Socket)) return Promise.resolve('');
  let text = '';
  stream.setEncoding('utf8').unref();
  stream.on('data', (more: string) => {
    if (text.length < maxStatusChars) text += more;
  });
  return new Promise((resolve) => {
    stream.once('close', () => resolve(text));
  });
}

/** The reason of `manycore-enter` or bubblewrap, if the partition could not be made. `line`: the last on stderr. */
export function refusalOf(exitCode: number | null, line: string): CodedError | undefined {
  const isOfEnter = exitCode === refusedExitCode && line.startsWith('manycore-enter: ');
  const isOfBubblewrap = exitCode === 1 && line.startsWith('bwrap: ');
  return isOfEnter || isOfBubblewrap ? unavailable(printable(line)) : undefined;
}

/** The limit that the kernel has enforced by a kill. `status`: what `manycore-enter run` wrote. */
export function causeOf(status: string, { memoryMb }: FilledSandbox): Error | undefined {
  if (!status.includes('memory\n')) return undefined;
  return new Error(`memory limit of ${memoryMb} MiB (memoryMb)`);
}
