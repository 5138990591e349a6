// `manycore dashboard` in a process of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { waitFor } from '../support/index.js';

/** The program `manycore`. */
const command = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

export interface RunningDashboard {
  readonly child: ChildProcess;
  /** Printed lines. */
  readonly lines: readonly string[];
  /** Printed address, with the token. */
  readonly address: string;
  /** The address without the token. */
  readonly origin: string;
  readonly port: number;
  readonly token: string;
}

/** Starts a dashboard that ends with the test. */
export async function startDashboard(
  t: TestContext,
  ...flags: string[]
): Promise<RunningDashboard> {
  const child = spawn(process.execPath, [command, 'dashboard', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  const address = await waitFor(() => /^open (\S+)\n/.exec(text)?.[1]);
  const url = new URL(address);
  return {
    child,
    get lines() {
      return text.trimEnd().split('\n');
    },
    address,
    origin: url.origin,
    port: Number(url.port),
    token: url.searchParams.get('token') ?? '',
  };
}

export async function end({ child }: RunningDashboard): Promise<number | null> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const [status]: (number | null)[] = await exited;
  return status ?? null;
}
