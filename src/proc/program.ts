// The path of the program that a Node process runs, read without its help.

import { readlinkSync } from 'node:fs';
import { resolve } from 'node:path';
import { textOf } from './text.js';

/** Flags of Node that take the next argument as their value. */
const withValue: ReadonlySet<string> = new Set([
  '-C',
  '--conditions',
  '--env-file',
  '--experimental-loader',
  '--import',
  '--loader',
  '-r',
  '--require',
]);
const evaluating = /^(-e|-p|-pe|--eval|--print)$/;

/**
 * `process.argv[1]` of the process. A process that set `process.title` has overwritten its arguments: then the
 * title. Empty when neither can be read.
 */
export function programPath(pid: number): string {
  const [name = '', ...args] = decoded(textOf(`/proc/${pid}/cmdline`))
    .replace(/[ \0]+$/, '')
    .split('\0');
  if (args.length === 0) return name;
  let at = 0;
  for (; args[at]?.startsWith('-'); at += 1) {
    const flag = args[at] ?? '';
    if (evaluating.test(flag)) return '';
    if (withValue.has(flag)) at += 1;
  }
  const path = args[at];
  return path === undefined ? '' : resolve(workingFolder(pid), path);
}

function decoded(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString();
}

function workingFolder(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '/'; // the process belongs to another user, or has ended
  }
}
