// Pools of sandboxes for tests, and the reason where this machine can have none.

import { existsSync, readdirSync, readFileSync, readlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { readStat } from '../../src/proc/index.js';
import { Pool, type PoolOptions, type SandboxOptions, type VmOptions } from '../../src/public.js';
import { partitionProblem, vmPrograms } from '../../src/worker/index.js';
import { isFew } from '../support/index.js';

/** For `test(name, { skip }, …)`. */
export const skip = partitionProblem()?.message ?? false;

export function sandboxPool(
  t: TestContext,
  sandbox: Omit<SandboxOptions, 'kind'> = {},
  options: PoolOptions = {},
): Pool {
  const pool = new Pool({ size: 1, ...options, worker: { kind: 'sandbox', ...sandbox } });
  t.after(() => pool.destroy());
  return pool;
}

export type Engine = 'uml' | 'gvisor';

/** For virtual machines of this engine. */
export function skipVm(engine: Engine): string | false {
  const { kernel, runsc } = vmPrograms();
  const program = engine === 'uml' ? kernel : runsc;
  // Guests of User-mode Linux take the most time of all tests, and their Node is the same.
  if (isFew && engine === 'uml' && 'path' in runsc) return 'in a short run gVisor is enough';
  return skip || ('problem' in program && program.problem);
}

export function vmPool(
  t: TestContext,
  vm: Omit<VmOptions, 'kind'> = {},
  options: PoolOptions = {},
): Pool {
  const pool = new Pool({ size: 1, ...options, worker: { kind: 'vm', ...vm } });
  t.after(() => pool.destroy());
  return pool;
}

/** Groups of the sandboxes of one program, and those without a maker. */
export function groups(starter = process.pid): string[] {
  const root = '/sys/fs/cgroup';
  const folders = existsSync(root)
    ? [root, ...readdirSync(root).map((name) => join(root, name))]
    : [];
  return folders.flatMap((folder) =>
    namesIn(folder)
      .filter((name) => /^manycore-\d+$/.test(name))
      .filter((name) => !isOfOther(Number(name.slice('manycore-'.length)), starter))
      .map((name) => join(folder, name)),
  );
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Processes of the sandboxes of one program: other files of tests run at the same time. */
export function sandboxProcesses(starter = process.pid): string[] {
  return namesIn('/proc').filter(
    (name) =>
      /manycore-enter\0(run|enter)|bwrap\0/.test(commandOf(name)) &&
      !isOfOther(Number(name), starter),
  );
}

/** Processes of guests of one program: their kernels, and what those have started. */
export function guestProcesses(starter = process.pid): string[] {
  return namesIn('/proc').filter(
    (name) =>
      /^(?:\/\.manycore\/|runsc-)/.test(commandOf(name)) && !isOfOther(Number(name), starter),
  );
}

/** True: another program than that has started the sandbox of this process, and the one outside of it lives. */
function isOfOther(pid: number, own = process.pid): boolean {
  const starter = /manycore-enter\0run\0--parent\0(\d+)\0/.exec(commandOf(pid))?.[1];
  if (starter !== undefined) return Number(starter) !== own;
  const parent = readStat(`/proc/${pid}`)?.parentPid ?? 0;
  return parent > 1 && isOfOther(parent, own);
}

/** The command line of a process, with a zero behind each word; empty: it is gone. */
export function commandOf(pid: number | string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Runs `attempt` and returns the code of what it throws; `done`: it threw nothing. Sent into sandboxes. */
export async function outcome(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
    return 'done';
  } catch (error) {
    const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
    return typeof code === 'string' ? code : String(error);
  }
}

/** The code of an error, and the error itself in its place where it has none. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : String(error);
}

/** The parts of its channel that hostile code in a sandbox can reach. */
export interface Forger {
  /** Sends any frame, past manycore's own checks; waits for room. */
  readonly send: (kind: number, slot: number, target: number, body?: Buffer) => void;
  readonly close: () => void;
  /** All words of the segment, as the parent sees them. */
  readonly words: Int32Array;
  /** Rings the parent, so often. */
  readonly ring: (times: number) => void;
  /** The descriptors of its end of the bell. */
  readonly bells: readonly number[];
}

/** Sent into sandboxes: true if the text of these parts was in any frame to it, or in its arguments. */
export function hasReceived(...parts: readonly string[]): boolean {
  const text = parts.join('');
  const frames = Buffer.from(forger().words.buffer);
  return frames.includes(text) || process.argv.some((each) => each.includes(text));
}

/** Sent into sandboxes: finds the channel on the heap by the inspector, as hostile code can. */
export function forger(): Forger {
  const isKnown = (value: unknown): value is Forger => typeof value === 'object';
  const known: unknown = Reflect.get(globalThis, 'forger');
  if (isKnown(known)) return known;
  const { Session } = process.getBuiltinModule('node:inspector');
  const session = new Session();
  session.connect();
  const found: unknown[] = [];
  const all = (prototype: string): unknown[] => {
    found.length = 0;
    Reflect.set(globalThis, 'forged', found);
    const one = 'function() { for (const each of this) globalThis.forged.push(each); }';
    session.post('Runtime.evaluate', { expression: prototype }, (failed, { result }) => {
      if (failed) throw failed;
      const query = { prototypeObjectId: result.objectId ?? '' };
      session.post('Runtime.queryObjects', query, (_, { objects }) => {
        const call = { functionDeclaration: one, objectId: objects.objectId ?? '' };
        session.post('Runtime.callFunctionOn', call);
      });
    });
    return [...found];
  };
  interface Sender {
    trySend(
      kind: number,
      slot: number,
      target: number,
      write: (writer: { raw(bytes: Buffer): void }, bytes: Buffer) => boolean,
      body: Buffer,
    ): string;
    close(): void;
  }
  const isSender = (object: unknown): object is Sender => {
    const prototype: unknown =
      typeof object === 'object' && object !== null && Object.getPrototypeOf(object);
    return (
      typeof prototype === 'object' && prototype !== null && Object.hasOwn(prototype, 'trySend')
    );
  };
  const channel = all('Object.prototype').find(isSender);
  const magic = 0x4753_434d;
  const buffer = all('ArrayBuffer.prototype').find(
    (each): each is ArrayBuffer =>
      each instanceof ArrayBuffer &&
      each.byteLength > 2 ** 20 &&
      new Int32Array(each, 0, 1)[0] === magic,
  );
  session.disconnect();
  Reflect.deleteProperty(globalThis, 'forged');
  const isBell = (fd: number): boolean => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      // A guest has a serial line; in gVisor the segment is a descriptor of the host, too.
      return (
        fd > 2 && (/^(?:socket:|\/dev\/ttyS)/.test(target) || (fd === 4 && /^host:/.test(target)))
      );
    } catch {
      return false;
    }
  };
  const bells = readdirSync('/proc/self/fd').map(Number).filter(isBell);
  const [bell] = bells;
  if (channel === undefined || buffer === undefined || bell === undefined) {
    throw new Error('its channel is hidden');
  }
  const made: Forger = {
    bells,
    words: new Int32Array(buffer),
    close: () => channel.close(),
    send(kind, slot, target, body = Buffer.alloc(0)) {
      const write = (writer: { raw(bytes: Buffer): void }, bytes: Buffer): boolean => {
        writer.raw(bytes);
        return true;
      };
      while (channel.trySend(kind, slot, target, write, body) === 'full');
    },
    ring(times) {
      for (let at = 0; at < times; at += 1) {
        try {
          writeSync(bell, 'x');
        } catch {} // it is full
      }
    },
  };
  Reflect.set(globalThis, 'forger', made);
  return made;
}
