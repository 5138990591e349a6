// A running CGI program: started natively without a copy of this process, read in large pieces, ended
// together with its child processes.

import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { callNative, type NativeProgram, requireNative } from '../../native.js';

/** Size of both pipes, and of one read: the maximum for unprivileged users of Linux. */
const pipeBytes = 2 ** 20;
/** After two writes within this time, in ms, the pipe is left to fill before the next read. */
const bulkMs = 2;
/** Wait for the pipe to fill, in ms. */
const fillMs = 1;
/** Longer wait, after the pipe was less than half full, in ms. */
const slowFillMs = 3;
/** Time between SIGTERM and SIGKILL, in ms. */
const killAfterMs = 2000;
const minPollMs = 1;
const maxPollMs = 1000;

/** Shared by all programs of this thread: each chunk is copied before the next read. */
let readBuffer: Buffer | undefined;

export interface ProgramListeners {
  /** Returns false to pause until `resume()`. */
  readonly onOutput: (chunk: Buffer) => boolean;
  /** Called at the end of its output; `status` is that of wait(2), `undefined`: it still runs. */
  readonly onEnd: (status: number | undefined) => void;
}

export interface StartOptions {
  readonly path: string;
  readonly args: readonly string[];
  readonly env: readonly (readonly [string, string])[];
  readonly folder: string;
}

/** `onread` is documented for the constructor, too; its types have it for `connect()` alone. */
type ReadingOptions = SocketConstructorOpts & { readonly onread: OnReadOpts };

export class CgiProgram {
  readonly input: Socket;
  /** Resolves when the program has ended: closing its output is not the end. */
  readonly exited: Promise<void>;
  readonly #pid: number;
  readonly #output: Socket;
  readonly #listeners: ProgramListeners;
  #mayRead = true;
  #readAtMs = 0;
  #fillMs = fillMs;
  #hasEnded = false;

  /** Rejects with the system's reason. */
  static async start(options: StartOptions, listeners: ProgramListeners): Promise<CgiProgram> {
    const { startProgram } = requireNative();
    const started = await startProgram({ ...options, pipeBytes });
    return new CgiProgram(started, listeners);
  }

  private constructor({ pid, stdin, stdout }: NativeProgram, listeners: ProgramListeners) {
    this.#pid = pid;
    this.#listeners = listeners;
    this.input = new Socket({ fd: stdin, readable: false, writable: true });
    this.input.on('error', () => {}); // the program may stop reading its input
    readBuffer ??= Buffer.allocUnsafeSlow(pipeBytes);
    const buffer = readBuffer;
    const onread = {
      buffer,
      callback: (bytes: number) => this.#read(Buffer.from(buffer.subarray(0, bytes))),
    };
    const options: ReadingOptions = { fd: stdout, readable: true, writable: false, onread };
    this.#output = new Socket(options);
    this.#output.on('error', () => {});
    this.exited = new Promise((resolve) => {
      // A child that other code has reaped has ended, too.
      const ended = () => this.#outputEnded().catch(() => this.#listeners.onEnd(undefined));
      this.#output.once('close', () => void ended().then(resolve));
    });
    this.#output.resume();
  }

  #read(chunk: Buffer): boolean {
    const nowMs = performance.now();
    const isBulk = nowMs - this.#readAtMs < bulkMs + this.#fillMs;
    this.#readAtMs = nowMs;
    this.#mayRead = this.#listeners.onOutput(chunk);
    this.#fillMs = 2 * chunk.length < pipeBytes ? slowFillMs : fillMs;
    if (this.#mayRead && isBulk) setTimeout(() => this.#readOn(), this.#fillMs);
    return this.#mayRead && !isBulk;
  }

  #readOn(): void {
    if (this.#mayRead) this.#output.resume();
  }

  /** Continues after `onOutput` has returned false. */
  resume(): void {
    this.#mayRead = true;
    this.#readOn();
  }

  async #outputEnded(): Promise<void> {
    this.input.destroy();
    const status = await this.#reap(maxPollMs / 10);
    this.#listeners.onEnd(status);
    if (!this.#hasEnded) await this.#reap(Infinity).catch(() => {});
  }

  /** Polls for the exit status, for at most `limitMs`. */
  async #reap(limitMs: number): Promise<number | undefined> {
    const endMs = performance.now() + limitMs;
    for (let waitMs = minPollMs; ; waitMs = Math.min(2 * waitMs, maxPollMs)) {
      const status = callNative(() => requireNative().reapProgram(this.#pid));
      this.#hasEnded = status !== null;
      if (status !== null) return status;
      if (performance.now() >= endMs) return undefined;
      await new Promise((resolve) => setTimeout(resolve, waitMs).unref());
    }
  }

  /** Ends the program and its process group by SIGTERM, later by SIGKILL. */
  end(): void {
    this.#signal('SIGTERM');
    setTimeout(() => {
      this.#signal('SIGKILL');
      this.#output.destroy(); // processes that have left the group may still hold it
    }, killAfterMs).unref();
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#hasEnded) return;
    try {
      process.kill(-this.#pid, signal);
    } catch {} // it has just ended
  }
}
