// A CGI program that runs: started natively without a copy of this process, read in large pieces, ended
// with everything that it started.

import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { callNative, type NativeProgram, requireNative } from '../../native.js';

/** Of both pipes, and of one read: what Linux lets every user have. */
const pipeBytes = 2 ** 20;
/** A program that has written twice within this time, in ms, writes more: the pipe is left to fill. */
const bulkMs = 2;
const fillMs = 1;
/** The same where that has not half filled it. */
const slowFillMs = 3;
/** For what a program does at SIGTERM, in ms. */
const killAfterMs = 2000;
const firstLookMs = 1;
const lastLookMs = 1000;

/** Of all programs of this thread: what is read is copied before another read begins. */
let readBuffer: Buffer | undefined;

export interface ProgramListeners {
  /** False: no more for now, until `resume()`. */
  readonly onOutput: (chunk: Buffer) => boolean;
  /** Its output has ended; `status` as wait(2) tells it, `undefined` for one that still runs. */
  readonly onEnd: (status: number | undefined) => void;
}

export interface StartOptions {
  readonly path: string;
  readonly env: readonly (readonly [string, string])[];
  readonly folder: string;
}

/** `onread` is documented, of the constructor too; its types know it of `connect()` alone. */
type ReadingOptions = SocketConstructorOpts & { readonly onread: OnReadOpts };

export class CgiProgram {
  readonly input: Socket;
  /** Resolves when it has ended: closing its output is not the end. */
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
    this.input.on('error', () => {}); // it reads nothing, or no more: its affair
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
      // A child that somebody else has reaped has ended, too.
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

  /** After `onOutput` has answered false. */
  resume(): void {
    this.#mayRead = true;
    this.#readOn();
  }

  async #outputEnded(): Promise<void> {
    this.input.destroy();
    const status = await this.#reap(lastLookMs / 10);
    this.#listeners.onEnd(status);
    if (!this.#hasEnded) await this.#reap(Infinity).catch(() => {});
  }

  /** Looks again and again, for at most `limitMs`. */
  async #reap(limitMs: number): Promise<number | undefined> {
    const endMs = performance.now() + limitMs;
    for (let waitMs = firstLookMs; ; waitMs = Math.min(2 * waitMs, lastLookMs)) {
      const status = callNative(() => requireNative().reapProgram(this.#pid));
      this.#hasEnded = status !== null;
      if (status !== null) return status;
      if (performance.now() >= endMs) return undefined;
      await new Promise((resolve) => setTimeout(resolve, waitMs).unref());
    }
  }

  /** Ends it and what it has started: by SIGTERM, and by SIGKILL when that is not enough. */
  end(): void {
    this.#signal('SIGTERM');
    setTimeout(() => {
      this.#signal('SIGKILL');
      this.#output.destroy(); // what has left the group may still hold it
    }, killAfterMs).unref();
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#hasEnded) return;
    try {
      process.kill(-this.#pid, signal);
    } catch {} // it has just ended
  }
}
