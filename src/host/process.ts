// The parent's handle of a host that is a process: started by `spawn` and not by `fork`, because we
// bring our own channel at descriptor 3 and up. Its stdout and stderr are this process's own, so that
// no output is lost at its end and none passes through our event loop.
// Not here: what it does (entry.ts), what is sent to it (link.ts).

import { type ChildProcess, spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ChannelOffer } from '../channels/index.js';
import type { HostTicket } from './protocol.js';
import type { HostExit, HostHandle, HostOptions } from './types.js';

const entryPath = fileURLToPath(new URL('./entry.js', import.meta.url));

/** Flags of this process that a host must not repeat, with how many arguments follow them. */
const ownFlags: ReadonlyMap<string, number> = new Map([
  ['-e', 1],
  ['--eval', 1],
  ['-p', 1],
  ['-pe', 1],
  ['--print', 1],
  ['-c', 0],
  ['--check', 0],
  ['-i', 0],
  ['--interactive', 0],
  ['--test', 0],
  ['--watch', 0],
  ['--input-type', 1],
]);
const ownFlagPrefixes = [
  '--inspect',
  '--test-',
  '--watch-',
  '--cpu-prof',
  '--heap-prof',
  '--prof',
  '--input-type=',
  '--eval=',
  '--print=',
];

/** The flags of `execArgv` that make sense in a host as well: loaders, conditions, V8's own. */
export function inheritedFlags(execArgv: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index < execArgv.length; index += 1) {
    const flag = execArgv[index] ?? '';
    const skipped = ownFlags.get(flag);
    if (skipped !== undefined) index += skipped;
    else if (!ownFlagPrefixes.some((prefix) => flag.startsWith(prefix))) kept.push(flag);
  }
  return kept;
}

/** Starts a host process; a start that the system refuses is an `onExit` with the error. */
export function startProcess(
  ticket: HostTicket,
  offer: ChannelOffer,
  options: HostOptions,
): HostHandle {
  const flags = [...inheritedFlags(process.execArgv), ...options.execArgv];
  if (options.maxHeapMb > 0) flags.push(`--max-old-space-size=${options.maxHeapMb}`);
  const child = spawn(process.execPath, [...flags, entryPath, JSON.stringify(ticket)], {
    stdio: ['ignore', 'inherit', 'inherit', ...offer.stdio],
    env: { ...process.env, ...options.env },
    windowsHide: true,
  });
  child.unref();
  return new ProcessHandle(child);
}

class ProcessHandle implements HostHandle {
  readonly kind = 'process';
  readonly pipe: Duplex | undefined;
  onExit: (exit: HostExit) => void = () => {};
  readonly #child: ChildProcess;
  #hasEnded = false;

  constructor(child: ChildProcess) {
    this.#child = child;
    const pipe = child.stdio[3];
    this.pipe = pipe instanceof Duplex ? pipe : undefined;
    child.once('error', (error) => {
      if (child.pid === undefined) this.#end({ exitCode: null, signal: null, error });
    });
    child.once('exit', (exitCode, signal) => this.#end({ exitCode, signal, error: undefined }));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  #end(exit: HostExit): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.onExit(exit);
  }

  ref(): void {
    this.#child.ref();
  }

  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
