// Both ends of an shm channel for tests: in one thread, or with a child process at the other end.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ByteReader, ByteWriter } from '../../src/channels/bytes.js';
import { acceptShm, offerShm, type ShmEnd, type ShmOptions } from '../../src/channels/shm/index.js';

export const writeText = (writer: ByteWriter, text: string): boolean => {
  writer.raw(Buffer.from(text));
  return true;
};

export const readText = (body: ByteReader): string =>
  body.copy(body.limit - body.position).toString();

/** Both ends in this thread. */
export function openPair(t: TestContext, options: Partial<ShmOptions> = {}): [ShmEnd, ShmEnd] {
  const offer = offerShm({ host: 'thread', spin: true, ...options });
  const parent = offer.open();
  const host = acceptShm(offer.ticket);
  t.after(() => {
    parent.channel.destroy();
    host.channel.destroy();
  });
  return [parent, host];
}

export interface ChildHost extends ShmEnd {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
}

/** The other end runs `file` (beside the tests) in a process of its own, with the ticket as argv. */
export function openWithChild(
  t: TestContext,
  file: string,
  args: readonly string[] = [],
  options: Partial<ShmOptions> = {},
): ChildHost {
  const offer = offerShm({ host: 'process', spin: true, ...options });
  const script = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(offer.ticket), ...args], {
    stdio: ['ignore', 'inherit', 'inherit', ...offer.stdio],
  });
  const end = offer.open();
  const exited = once(child, 'exit');
  child.once('exit', () => end.channel.peerExited());
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
    end.channel.destroy();
  });
  return { ...end, child, exited };
}

/** Waits until `isSo`, at most five seconds. */
export async function until(isSo: () => boolean, what: string): Promise<void> {
  const deadlineMs = performance.now() + 5000;
  while (!isSo()) {
    if (performance.now() > deadlineMs) throw new Error(`not within 5 s: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
