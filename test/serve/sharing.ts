// A server whose loops share workers (apps/parallel.ts), for tests.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ServedApp, ServeOptions } from '../../src/serve/index.js';
import { grantedCores } from '../../src/worker/index.js';
import { childrenOf, waitFor } from '../support/index.js';
import { ask, portOf } from './client.js';
import { open } from './served.js';

export const app = fileURLToPath(new URL('./apps/parallel.js', import.meta.url));
export const workerCount = grantedCores().count;

export interface Said {
  readonly loop: string;
  readonly said?: number;
  readonly code?: string;
}

export async function say(server: ServedApp, query = ''): Promise<Said> {
  const { status, body } = await ask(portOf(server), `/?${query}`);
  assert.equal(status, 200);
  return JSON.parse(body);
}

/** From each loop, however the connections are placed: asks until all have answered. */
export async function sayFromAll(server: ServedApp, loops: number, query = ''): Promise<Said[]> {
  const said = new Map<string, Said>();
  await waitFor(async () => {
    const answers = Array.from({ length: 2 * loops }, () => say(server, query));
    for (const each of await Promise.all(answers)) {
      // Not of a process that drains.
      if (server.pids.some((pid) => each.loop.startsWith(`${pid}:`))) said.set(each.loop, each);
    }
    return said.size === loops;
  });
  return [...said.values()];
}

/** Child processes that are workers. */
export function workers(): number[] {
  return childrenOf(process.pid)
    .filter(({ commandLine }) => commandLine.includes('shared'))
    .map(({ pid }) => pid);
}

export async function openShared(
  t: TestContext,
  processes = 2,
  options: ServeOptions = {},
): Promise<ServedApp> {
  return await open(t, app, { processes, loops: 2, ...options });
}
