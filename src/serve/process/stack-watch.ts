// Both ends of the socket to the stack thread, beside a program that runs in the main thread of its process.
// The thread takes the program's stack at the supervisor's request, which a blocked main thread could not
// receive. With several loops the main thread takes stacks itself (process.ts).

import { closeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { type Channel, overSocket } from '../../channels/index.js';
import { callNative, type NativeDescriptors, requireNative } from '../../native.js';
import { type ArrivedEnvelope, parseFromProcess, type ToProcess } from '../protocol.js';
import { threadPort, WireLink } from '../shared/link.js';

/** A stack is short; a program in the process may send anything. */
export const maxStackBytes = 64 * 1024;

/** The supervisor's end. */
export class StackWatch {
  readonly #onStack: (stack: string | undefined) => void;
  readonly #link: WireLink<ToProcess>;
  readonly #descriptors: NativeDescriptors | undefined;
  /** The process's end, inherited at its start; `undefined`: it is there already. */
  readonly theirFd: number | undefined;

  /** `onStack` gets each answer; there is none from a process that never started its thread. */
  constructor(
    channel: Channel,
    onStack: (stack: string | undefined) => void,
    theirs?: { readonly fd: number; readonly descriptors: NativeDescriptors },
  ) {
    this.#onStack = onStack;
    this.#descriptors = theirs?.descriptors;
    this.theirFd = theirs?.fd;
    this.#link = new WireLink(channel, threadPort, {
      onEnvelope: (envelope) => this.#receive(envelope),
      onError: () => this.#link.close(), // an invalid message: no stacks any more
    });
    this.#link.unref();
  }

  /** Makes both ends. Throws `NATIVE_REFUSED` when no descriptors are left. */
  static overPair(onStack: (stack: string | undefined) => void): StackWatch {
    const descriptors = new (requireNative().NativeDescriptors)();
    const [ours = -1, theirs = -1] = callNative(() => descriptors.createSocketPair());
    const fd = callNative(() => descriptors.release(ours));
    const channel = overSocket(fd, maxStackBytes);
    return new StackWatch(channel, onStack, { fd: theirs, descriptors });
  }

  /** Closes the process's end here: the process has inherited it, or failed to start. */
  closeTheirEnd(): void {
    this.#descriptors?.closeAll();
  }

  request(): void {
    this.#link.post({ body: { type: 'takeStack', index: 0 } });
  }

  close(): void {
    this.#link.close();
  }

  #receive(envelope: ArrivedEnvelope): void {
    const message = parseFromProcess(envelope);
    if (message.type === 'stack') this.#onStack(message.stack);
  }
}

/** Starts the thread, which owns `fd` from now on. Without it there are no stacks. */
export function startStackThread(fd: number): void {
  try {
    const worker = new Worker(new URL('./stack-thread.js', import.meta.url), {
      workerData: fd,
      // Preloads and settings are for the program alone.
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
