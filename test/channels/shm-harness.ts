// Both ends of an shm channel for tests: in one thread, or with a child process at the other end.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ByteReader, ByteWriter } from '../../src/channels/bytes.js';
import {
  acceptShm,
  type IsolatedOptions,
  offerIsolated,
  offerShm,
  type ShmEnd,
  type ShmOptions,
} from '../../src/channels/shm/index.js';
import { requireNative } from '../../src/native.js';

export const writeText = (writer: ByteWriter, text: string): boolean => {
  writer.raw(Buffer.from(text));
  return true;
};

export const readText = (body: ByteReader): string =>
  body.copy(body.limit - body.position).toString();

/** Both ends in this thread. */
export function openPair(t: TestContext, options: Partial<ShmOptions> = {}): [ShmEnd, ShmEnd] {
  const offer = offerShm({ worker: 'thread', spin: true, ...options });
  const parent = offer.open();
  const worker = acceptShm(offer.ticket);
  t.after(async () => {
    parent.channel.destroy();
    worker.channel.destroy();
    parent.peerExited();
    await untilCollected(() => openDescriptors('manycore-arena').length === 0, 'no arena is open');
  });
  return [parent, worker];
}

/** Both ends of a channel to a worker that is not trusted, in this thread. */
export function openIsolatedPair(
  t: TestContext,
  options: Omit<IsolatedOptions, 'spin'>,
): [ShmEnd, ShmEnd] {
  const offer = offerIsolated({ spin: false, ...options });
  const { NativeDescriptors } = requireNative();
  const fds = new NativeDescriptors();
  const [segment = -1, bell = -1] = offer.stdio
    .map((entry) => fds.duplicate(Number(entry)))
    .map((fd) => fds.release(fd));
  const parent = offer.open();
  const worker = acceptShm({ ...offer.ticket, kind: 'shm', segment, bell });
  t.after(() => {
    parent.channel.destroy();
    worker.channel.destroy();
  });
  return [parent, worker];
}

/** Returns the targets of this process's descriptors that contain `part`. */
export function openDescriptors(part: string): string[] {
  const nameOf = (fd: string): string => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ''; // the descriptor of the listing itself
    }
  };
  return readdirSync('/proc/self/fd')
    .map(nameOf)
    .filter((name) => name.includes(part));
}

setFlagsFromString('--expose-gc');
export const collect: () => void = runInNewContext('gc');

/** Like `until`, with a garbage collection before each check. */
export function untilCollected(isSo: () => boolean, what: string): Promise<void> {
  const check = (): boolean => {
    collect();
    return isSo();
  };
  return until(check, what);
}

export interface ChildWorker extends ShmEnd {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
}

/** The other end runs `file` (beside the tests) in a process of its own, with the ticket as argv. */
export function openWithChild(
  t: TestContext,
  file: string,
  args: readonly string[] = [],
  options: Partial<ShmOptions> = {},
): ChildWorker {
  const offer = offerShm({ worker: 'process', spin: true, ...options });
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
    end.peerExited();
    await untilCollected(() => openDescriptors('manycore-').length === 0, 'no memfd is open');
  });
  return { ...end, child, exited };
}

/** Waits until `isSo`, at most half a minute. */
export async function until(isSo: () => boolean, what: string): Promise<void> {
  const deadlineMs = performance.now() + 30_000;
  while (!isSo()) {
    if (performance.now() > deadlineMs) throw new Error(`not within 30 s: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
