// A child process of our own program that gets messages as JSON over a wire, and descriptors over a control
// socket beside it: a process of a server, a shared worker. Not here: the messages themselves, and when the
// process ends.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { withBlockingThreads } from '../../blocking-pool/index.js';
import { type Channel, offerChannel } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { jsonOf, ownOf } from '../../lib/index.js';
import { callNative, requireNative } from '../../native.js';
import { ControlSocket } from '../both/control-socket.js';
import { noteEnd, spaceFd } from '../both/shared-memory.js';
import { inheritedEnvironment, inheritedFlags } from './flags.js';

/** Descriptors of the process: the wire's, the control socket's, those that the caller gives, then the memory's. */
const wireAt = 3;
const controlSocketAt = 4;
const firstGivenAt = 5;
/** Maximum size of a message: ours are short, but a program in the process may send anything. */
const maxFrameBytes = 1024 * 1024;

/** Facts that a process needs to take its end. Part of its ticket. */
export interface WireTicket {
  readonly channel: unknown;
  readonly controlSocketFd: number;
  /** The descriptor of the program's transactional memory. */
  readonly spaceFd: number | undefined;
}

/** Environment and flags of Node that a process gets from its starter. */
export interface Inherited {
  readonly env: NodeJS.ProcessEnv;
  readonly execArgv: readonly string[];
}

export interface WiredOptions<End> {
  readonly entry: URL;
  /** Descriptors for the process, which stay the caller's. */
  readonly fds: readonly number[];
  /** Returns its one argument, as JSON; `givenFds` are the numbers of `fds` there. */
  readonly ticket: (wire: WireTicket, givenFds: readonly number[]) => object;
  /** Makes this process's end of the wire. */
  readonly open: (channel: Channel, controlSocket: ControlSocket) => End;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** Size of its blocking pool; the user's setting wins. */
  readonly blockingThreads: number;
  /** True: its output is in the streams of the child, and not this process's own. */
  readonly hasPipes?: boolean;
  /** Default: of this process, at this moment. */
  readonly inherited?: Inherited | undefined;
}

export class WiredProcess<End extends { close(): void }> {
  /** Has no `pid` if the system has started none: `error` follows. */
  readonly child: ChildProcess;
  readonly end: End;
  readonly controlSocket: ControlSocket;

  /** Throws `WORKER_START_FAILED`, `NATIVE_MISSING`, `NATIVE_REFUSED`. */
  constructor(options: WiredOptions<End>) {
    const pair = new (requireNative().NativeDescriptors)();
    const [ours = -1, theirs = -1] = callNative(() => pair.createSocketPair());
    try {
      this.controlSocket = new ControlSocket(callNative(() => pair.release(ours)));
    } catch (error) {
      pair.closeAll();
      throw error;
    }
    try {
      const offer = offerChannel('socket', { worker: 'process', spin: false, maxFrameBytes });
      const space = spaceFd();
      const wireTicket = {
        channel: offer.ticket,
        controlSocketFd: controlSocketAt,
        spaceFd: space === undefined ? space : firstGivenAt + options.fds.length,
      };
      const fds = space === undefined ? options.fds : [...options.fds, space];
      this.child = start(options, wireTicket, [...offer.stdio, theirs, ...fds]);
      // Without free descriptors it is missing, whatever its type is.
      const stdio: readonly unknown[] = Array.isArray(this.child.stdio) ? this.child.stdio : [];
      const pipe = stdio[wireAt];
      if (!(pipe instanceof Duplex)) {
        throw new CodedError('WORKER_START_FAILED', 'the system has started no process');
      }
      this.end = options.open(offer.open(pipe).channel, this.controlSocket);
    } catch (error) {
      this.controlSocket.close();
      throw error;
    } finally {
      pair.closeAll();
    }
    this.child.once('exit', () => {
      noteEnd();
      this.#close();
    });
    this.child.once('error', () => this.#close());
  }

  #close(): void {
    this.end.close();
    this.controlSocket.close();
  }
}

function start(
  { fds, ticket, ...options }: WiredOptions<unknown>,
  wireTicket: WireTicket,
  stdio: readonly (number | 'pipe')[],
): ChildProcess {
  const given = fds.map((_, at) => firstGivenAt + at);
  return startChild({ ...options, argument: ticket(wireTicket, given), stdio });
}

export interface ChildOptions extends Omit<WiredOptions<unknown>, 'fds' | 'ticket' | 'open'> {
  /** The one argument of the process, sent as JSON. */
  readonly argument: object;
  /** From descriptor 3 on. */
  readonly stdio: readonly (number | 'pipe' | 'ipc')[];
}

/** Starts a process of our own program in the background. */
export function startChild(options: ChildOptions): ChildProcess {
  const { entry, argument, stdio, uid, gid, blockingThreads, hasPipes = false } = options;
  const output = hasPipes ? 'pipe' : 'inherit';
  const { env, execArgv } = options.inherited ?? process;
  const flags = inheritedFlags(execArgv);
  const spawnOptions: SpawnOptions = {
    stdio: ['ignore', output, output, ...stdio],
    env: ownOf(inheritedEnvironment(withBlockingThreads(env, blockingThreads))),
    ...(uid !== undefined && { uid }),
    ...(gid !== undefined && { gid }),
    // A Ctrl-C at the terminal is handled by the starter of this process.
    detached: true,
  };
  const args = [...flags, fileURLToPath(entry.href), jsonOf(argument)];
  return spawn(process.execPath, args, ownOf(spawnOptions));
}
