// The Node of the program, which may differ from ours: version and default heap limit, queried once.

import { execFileSync } from 'node:child_process';
import { getHeapStatistics } from 'node:v8';
import type { Program } from './launch.js';

export interface ProgramNode {
  readonly version: string;
  /** V8's default heap limit, without a flag, in MiB. */
  readonly defaultHeapMb: number;
}

const mib = 2 ** 20;
const script =
  'JSON.stringify([process.versions.node, require("node:v8").getHeapStatistics().heap_size_limit])';
const answerMs = 10_000;

/** Returns the values of our own Node when the program is no Node or does not answer. */
export function programNode({ executable: [file = ''], kind }: Program): ProgramNode {
  if (kind === 'other') return ourNode();
  try {
    const answer = execFileSync(file, ['-p', script], {
      env: { ...process.env, NODE_OPTIONS: '' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: answerMs,
    });
    const [version, limit]: unknown[] = JSON.parse(answer);
    if (typeof version !== 'string' || typeof limit !== 'number') return ourNode();
    return { version, defaultHeapMb: Math.round(limit / mib) };
  } catch {
    return ourNode();
  }
}

function ourNode(): ProgramNode {
  const { heap_size_limit: limit } = getHeapStatistics();
  return { version: process.versions.node, defaultHeapMb: Math.round(limit / mib) };
}
