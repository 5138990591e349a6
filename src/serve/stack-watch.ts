// Both ends of the way to a thread beside a program that runs in the main thread of its process: it takes
// the program's stack when the supervisor asks, which the main thread could not hear. With several loops
// the main thread does that itself (process.ts).

import { closeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { overSocket, Wire } from '../channels/index.js';
import { callNative, type NativeDescriptors, requireNative } from '../native.js';
import { parseFromProcess, type ToProcess } from './protocol.js';

/** A stack is short; a program in the process may send anything. */
const maxFrameBytes = 64 * 1024;

/** The supervisor's end. */
export class StackWatch {
  /** Called with each answer; not at all for a process that never started its thread. */
  onStack: (stack: string | undefined) => void = () => {};
  readonly #descriptors: NativeDescriptors;
  readonly #wire: Wire<ToProcess>;
  /** The process's end, to start it with. */
  readonly theirFd: number;

  /** Throws `NATIVE_REFUSED` without descriptors left. */
  constructor() {
    this.#descriptors = new (requireNative().NativeDescriptors)();
    const [ours = -1, theirs = -1] = callNative(() => this.#descriptors.createSocketPair());
    this.theirFd = theirs;
    const fd = callNative(() => this.#descriptors.release(ours));
    this.#wire = new Wire(overSocket(fd, maxFrameBytes));
    this.#wire.unref();
    this.#wire.onMessage = (message) => this.#receive(message);
  }

  /** The process has its end, or never will. */
  letGo(): void {
    this.#descriptors.closeAll();
  }

  ask(): void {
    this.#wire.post({ type: 'askStack', index: 0 });
  }

  close(): void {
    this.#wire.close();
  }

  #receive(message: unknown): void {
    try {
      const told = parseFromProcess(message);
      if (told.type === 'stack') this.onStack(told.stack);
    } catch {
      this.#wire.close(); // it has no stack to tell
    }
  }
}

/** The process's end: starts the thread, which has `fd` from now on. Without it there are no stacks. */
export function startStackThread(fd: number): void {
  try {
    const worker = new Worker(new URL('./stack-thread.js', import.meta.url), {
      workerData: fd,
      // What the program's owner preloads or sets is for the program.
      execArgv: [],
      env: {},
      name: 'manycore stack',
    });
    worker.unref();
    worker.on('error', () => {});
  } catch {
    closeSync(fd); // Node may not start threads here (--permission)
  }
}
