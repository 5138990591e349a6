// A child process of our own program that gets messages as JSON over a wire, and descriptors over a control
// socket (SCM_RIGHTS) beside it: a process of a server, a shared worker. Not here: the messages themselves,
// and when the process ends.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { withBlockingThreads } from '../../blocking-pool/index.js';
import { offerChannel, Wire, type WireListener } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { jsonOf, ownOf } from '../../lib/index.js';
import { callNative, type NativeDescriptors, requireNative } from '../../native.js';
import { inheritedEnvironment, inheritedFlags } from './flags.js';

/** Descriptors of the process: the wire's, the control socket's, then those that the caller gives. */
const wireAt = 3;
const controlSocketAt = 4;
const firstGivenAt = 5;
/** Maximum size of a message: ours are short, but a program in the process may send anything. */
const maxFrameBytes = 1024 * 1024;

/** Facts that a process needs to take its end. Part of its ticket. */
export interface WireTicket {
  readonly channel: unknown;
  readonly controlSocketFd: number;
}

export interface WiredOptions {
  readonly entry: URL;
  /** Descriptors for the process, which stay the caller's. */
  readonly fds: readonly number[];
  /** Returns its one argument, as JSON; `givenFds` are the numbers of `fds` there. */
  readonly ticket: (wire: WireTicket, givenFds: readonly number[]) => object;
  readonly listener: WireListener;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** Size of its blocking pool; the user's setting wins. */
  readonly blockingThreads: number;
}

export class WiredProcess<Message extends object> {
  /** Has no `pid` if the system has started none: `error` follows. */
  readonly child: ChildProcess;
  readonly wire: Wire<Message>;
  readonly #descriptors: NativeDescriptors;
  readonly #controlSocketFd: number;

  /** Throws `WORKER_START_FAILED`, `NATIVE_MISSING`, `NATIVE_REFUSED`. */
  constructor(options: WiredOptions) {
    this.#descriptors = new (requireNative().NativeDescriptors)();
    const [ours = -1, theirs = -1] = callNative(() => this.#descriptors.createSocketPair());
    this.#controlSocketFd = ours;
    try {
      const offer = offerChannel('socket', { worker: 'process', spin: false }, maxFrameBytes);
      const wireTicket = { channel: offer.ticket, controlSocketFd: controlSocketAt };
      this.child = start(options, wireTicket, [...offer.stdio, theirs]);
      // Without free descriptors it is missing, whatever its type is.
      const stdio: readonly unknown[] = Array.isArray(this.child.stdio) ? this.child.stdio : [];
      const pipe = stdio[wireAt];
      if (!(pipe instanceof Duplex)) {
        throw new CodedError('WORKER_START_FAILED', 'the system has started no process');
      }
      this.wire = new Wire(offer.open(pipe).channel, options.listener);
    } catch (error) {
      this.#descriptors.closeAll();
      throw error;
    }
    closeSync(callNative(() => this.#descriptors.release(theirs)));
    this.child.once('exit', () => this.#close());
    this.child.once('error', () => this.#close());
  }

  /**
   * Sends all or none; they stay the caller's. Throws `NATIVE_REFUSED` when the process does not take them.
   */
  sendDescriptors(fds: readonly number[]): void {
    callNative(() => requireNative().sendDescriptors(this.#controlSocketFd, [...fds]));
  }

  /**
   * Receives the descriptors of the next message, for `use` alone. Throws `NATIVE_REFUSED` when there is
   * none.
   */
  receiveDescriptors(use: (fds: readonly number[]) => void): void {
    const fds = callNative(() => this.#descriptors.receive(this.#controlSocketFd));
    try {
      use(fds);
    } finally {
      for (const fd of fds) closeSync(callNative(() => this.#descriptors.release(fd)));
    }
  }

  #close(): void {
    this.wire.close();
    this.#descriptors.closeAll();
  }
}

function start(
  { entry, fds, ticket, uid, gid, blockingThreads }: WiredOptions,
  wireTicket: WireTicket,
  firstFds: readonly (number | 'pipe')[],
): ChildProcess {
  const flags = inheritedFlags(process.execArgv);
  const given = fds.map((_, at) => firstGivenAt + at);
  const argument = jsonOf(ticket(wireTicket, given));
  const spawnOptions: SpawnOptions = {
    stdio: ['ignore', 'inherit', 'inherit', ...firstFds, ...fds],
    env: ownOf(inheritedEnvironment(withBlockingThreads(process.env, blockingThreads))),
    ...(uid !== undefined && { uid }),
    ...(gid !== undefined && { gid }),
    // A Ctrl-C at the terminal is handled by the starter of this process.
    detached: true,
  };
  const args = [...flags, fileURLToPath(entry.href), argument];
  return spawn(process.execPath, args, ownOf(spawnOptions));
}
