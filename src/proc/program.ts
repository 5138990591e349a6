// Which program a process of Node runs, for one that cannot be asked.

import { readlinkSync } from 'node:fs';
import { resolve } from 'node:path';
import { textOf } from './text.js';

/** Flags of Node whose value is the next argument. */
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
 * As it has it in `process.argv[1]`; of one that has named itself (`process.title`) the name, which it has
 * written over its arguments. Empty where neither can be seen.
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
    return '/'; // somebody else's, or it has ended
  }
}
