// Tickets: what a process of a server, a loop in a thread and a thread beside a loop get at their start.

import { CodedError } from '../errors.js';
import type { FilledServeOptions, Placement, Range } from './options.js';
import type { AccessFormat } from './output/access-line.js';

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** True: clients may use HTTP/2. */
  readonly http2: boolean;
  /** Certificates for names of the server. */
  readonly names: readonly {
    readonly name: string;
    readonly cert: string;
    readonly key: string;
  }[];
}

/** The program, its arguments, and the address for an export that does not listen itself. */
export interface AppSettings {
  readonly name: string;
  /** The absolute path of the program. */
  readonly path: string;
  readonly args: readonly string[];
  readonly port: number;
  /** True: `port` is also in `PORT`, for a program that listens by itself. */
  readonly isPortGiven: boolean;
  readonly host: string | undefined;
  /** The path of a Unix socket, instead of host and port. */
  readonly unix: string | undefined;
  /** Server names whose requests the app gets; empty: all. */
  readonly serverNames: readonly string[];
  /** Name of the cookie that keeps clients at their loop. */
  readonly stickyCookie: string | undefined;
  readonly maxConnections: number;
  /** Each loop's share of the cores, for pools with workers of their own. */
  readonly coresPerLoop: number;
  /** Maximum number of shared workers, for all loops of the server. */
  readonly workers: number;
  readonly tls: TlsFiles | undefined;
  /** `undefined`: there is no access log. */
  readonly accessFormat: AccessFormat | undefined;
}

/** Numbers that the loops of a process report as their own (`self`). */
export interface Place {
  /** `NODE_APP_INSTANCE` of its first loop. */
  readonly firstInstance: number;
  readonly generation: number;
}

/** The one argument of a process. */
export interface ProcessTicket {
  readonly kind: 'process';
  readonly parentPid: number;
  /** Number of the process: selects its rows of the scoreboard and its bell. */
  readonly process: number;
  readonly place: Place;
  /** Initial and maximum number; with a maximum of 1 the program runs in the main thread. */
  readonly loops: Range;
  readonly placement: Placement | 'sticky';
  /** A connection that no loop takes within this time is answered by 503, in ms; 0: never. */
  readonly overloadMs: number;
  /** Time for an added loop to listen, in ms; then it is ended. */
  readonly startTimeoutMs: number;
  /** Deadline of drains that the supervisor does not request, in ms. */
  readonly drainTimeoutMs: number;
  readonly app: AppSettings;
  readonly system: NativeProcessTicket | PortableProcessTicket;
  /** True: a loop that ends unrequested is started again here, and the others go on. */
  readonly restartsLoops: boolean;
  /** True: the supervisor reads its output, and gets a mark at the lines of each loop. */
  readonly marksOutput: boolean;
  /** Inherited socket of the thread that takes stacks of a program in the main thread. */
  readonly stackFd: number | undefined;
}

/** Descriptors that the process inherits, and its wire; with the native core. */
export interface NativeProcessTicket {
  readonly kind: 'native';
  readonly channel: unknown;
  readonly controlSocketFd: number;
  readonly boardFd: number;
  readonly bellFds: readonly number[];
  /** Both ends of the socket for connections that leave blocked loops; empty: they stay. */
  readonly handoverFds: readonly number[];
  /** The memory of `ActiveLeases`. */
  readonly activeLeasesFd: number;
  /** The program's transactional memory. */
  readonly spaceFd: number | undefined;
}

/** Size of the process's own scoreboard; without the native core. */
export interface PortableProcessTicket {
  readonly kind: 'portable';
  /** Number of processes in the scoreboard. */
  readonly processes: number;
}

/** Makes the ticket of the process with this number. */
export function processTicket(
  of: {
    readonly number: number;
    readonly queue: number;
    readonly generation: number;
    readonly app: AppSettings;
    readonly serve: FilledServeOptions;
    readonly restartsLoops: boolean;
  },
  system: ProcessTicket['system'],
  stackFd: number | undefined,
): ProcessTicket {
  const { number, queue, generation, app, serve, restartsLoops } = of;
  const { loops, placement, sticky, overloadMs, startTimeoutMs, drainTimeoutMs, onOutput } = serve;
  return {
    kind: 'process',
    parentPid: process.pid,
    process: number,
    place: { firstInstance: queue * loops.max, generation },
    loops,
    placement: sticky === undefined ? placement : 'sticky',
    overloadMs,
    startTimeoutMs,
    drainTimeoutMs,
    app,
    system,
    restartsLoops,
    marksOutput: onOutput !== undefined,
    stackFd,
  };
}

/** The `workerData` of a loop in a thread. */
export interface LoopTicket {
  readonly kind: 'loop';
  readonly process: number;
  readonly place: Place;
  readonly index: number;
  readonly system: LoopSystem;
  readonly app: AppSettings;
  readonly channel: unknown;
}

/** The access of a loop to its process. */
export type LoopSystem =
  | {
      readonly kind: 'native';
      /** Key of the process's listener thread. */
      readonly acceptorKey: number;
      /** The memory of `ActiveLeases`; open in the process while this loop starts. */
      readonly activeLeasesFd: number;
    }
  | { readonly kind: 'portable'; readonly board: SharedArrayBuffer };

/** The `workerData` of a thread beside a loop. */
export interface SideTicket {
  readonly kind: 'side';
  readonly channel: unknown;
  readonly data: unknown;
}

export type Ticket = ProcessTicket | LoopTicket | SideTicket;

/** Checks the kind alone: the starter is trusted. */
function isTicket(value: unknown): value is Ticket {
  const { kind }: { kind?: unknown } = Object(value);
  return kind === 'process' || kind === 'loop' || kind === 'side';
}

/** Throws `WORKER_PROTOCOL`. */
export function parseTicket(ticket: unknown): Ticket {
  if (isTicket(ticket)) return ticket;
  throw new CodedError(
    'WORKER_PROTOCOL',
    'this version of manycore cannot read the ticket of a process: restart the server',
  );
}
