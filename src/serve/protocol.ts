// Messages between the supervisor, its processes and their loops, and the only place where unknown values
// become such messages. A process forwards most of them between the supervisor and its loops.
// Long (over 400 lines), because requests are to be read beside their answers.

import { type MemberName, memberFdCount } from '../channels/index.js';
import { CodedError } from '../errors.js';
import { channelFds, type GrantedLease } from '../worker/index.js';
import type { Placement, Range } from './options.js';

/** Arguments of a program's `listen()`; -1 for what does not apply, as in Node's own cluster. */
export interface ListenQuery {
  /** An address, or the path of a Unix socket; `null` for all addresses. */
  readonly address: string | null;
  readonly port: number;
  /** 4 or 6, or -1 for a path. */
  readonly addressType: number;
  readonly backlog: number;
  readonly isV6Only: boolean;
  /** Ticket keys of a TLS server, in hex: all loops use those of the first, so that sessions resume. */
  readonly ticketKeys?: string | undefined;
  /** Counts the calls of one loop for the same address: each `listen(0)` is a socket of its own. */
  readonly index: number;
  /** Group of servers that share the ports of their `listen(0)`; the others of the program do not. */
  readonly group?: string | undefined;
}

/** Address of a listening socket, as `server.address()` returns it. */
export type BoundAddress =
  | { readonly address: string; readonly port: number; readonly family: 'IPv4' | 'IPv6' }
  | string;

/** The answer to a query: the socket's number in all processes, or an error. */
export type ListenAnswer =
  | {
      readonly number: number;
      readonly address: BoundAddress;
      readonly ticketKeys?: string | undefined;
    }
  /** The system's error as libuv's negative number, and details if there are any. */
  | { readonly errno: number; readonly reason?: string | undefined };

/** An error on its way to the supervisor. */
export interface TravelledError {
  readonly message: string;
  readonly code: string | undefined;
  readonly stack: string | undefined;
}

/** Messages from a loop to its process, and from a process to the supervisor. */
type FromBoth =
  | { readonly type: 'listen'; readonly request: number; readonly query: ListenQuery }
  /** The program is loaded and listens. From a process: in all its loops. */
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly error: TravelledError }
  /** Every connection is closed. */
  | { readonly type: 'drained' }
  /** The loop has stopped listening on the socket with this number. From a process: all its loops have. */
  | { readonly type: 'unlisten'; readonly number: number }
  /** Ends a lease that was requested, or granted. */
  | { readonly type: 'release'; readonly request: number };

export type FromLoop =
  | FromBoth
  /** Joins the mesh: the loop gets a channel to each other member. */
  | { readonly type: 'join' }
  /** Offers a channel to the member `to`; `fds` are the process's to close. */
  | { readonly type: 'offer'; readonly to: number; readonly fds: readonly number[] }
  /** Starts a thread beside the loop, with this program and `data` for it. */
  | {
      readonly type: 'startThread';
      readonly thread: number;
      readonly entry: string;
      readonly data: unknown;
    }
  | { readonly type: 'endThread'; readonly thread: number }
  /** Requests a lease in a worker of the server; `fds` are of its channel, and the process's to close. */
  | { readonly type: 'acquire'; readonly request: number; readonly fds: readonly number[] };

export type FromProcess =
  | FromBoth
  | { readonly type: 'join'; readonly loop: number }
  /** The descriptors go ahead over the control socket. */
  | { readonly type: 'offer'; readonly loop: number; readonly to: number }
  /**
   * Requests a lease for a loop, whose number is not used again. The descriptors go ahead over the control
   * socket, and requests are numbered by the process.
   */
  | { readonly type: 'acquire'; readonly loop: number; readonly request: number }
  /** The process drains, and has taken its last connection. */
  | { readonly type: 'leaving' }
  | { readonly type: 'loopEnded'; readonly loop: number }
  /** A loop that was added has failed before it listened; the others serve. */
  | { readonly type: 'loopFailed'; readonly index: number; readonly error: TravelledError }
  /** The stack of a loop; without `stack` it could not be taken. */
  | { readonly type: 'stack'; readonly index: number; readonly stack?: string | undefined };

/** Messages from the supervisor to a process, and from a process to its loops. */
type ToBoth =
  | { readonly type: 'answer'; readonly request: number; readonly answer: ListenAnswer }
  /** Take no new connection, finish open requests, close within `deadlineMs`. */
  | { readonly type: 'drain'; readonly deadlineMs: number }
  /** The loop has the lease that it has requested. */
  | { readonly type: 'granted'; readonly request: number; readonly lease: GrantedLease }
  /** The lease has ended, or is not granted. */
  | {
      readonly type: 'leaseEnded';
      readonly request: number;
      readonly exitCode: number | null;
      readonly signal: string | null;
      /** The reason of a refusal. */
      readonly message?: string | undefined;
    };

/** Messages of the mesh, without the descriptors that come along. */
type ToMember =
  | { readonly type: 'members'; readonly self: MemberName; readonly others: readonly MemberName[] }
  | { readonly type: 'offered'; readonly from: MemberName }
  /** An offer was not delivered. */
  | { readonly type: 'unreachable'; readonly id: number }
  /** A member has left; all survivors get the same message. */
  | {
      readonly type: 'left';
      readonly member: MemberName;
      readonly survivors: readonly MemberName[];
    };

export type ToLoop =
  | ToBoth
  /** The loop's own number, and the members that it offers channels to. The fd is the arena's. */
  | (ToMember & { readonly type: 'members'; readonly fds: readonly number[] })
  /** A channel that another member offers; `fds` are the loop's. */
  | (ToMember & { readonly type: 'offered'; readonly fds: readonly number[] })
  | (ToMember & { readonly type: 'unreachable' | 'left' })
  /** A thread beside the loop has ended, with the error that it threw. */
  | {
      readonly type: 'threadEnded';
      readonly thread: number;
      readonly error: TravelledError | undefined;
    }
  /** The supervisor is gone: no lease is granted any more. */
  | { readonly type: 'orphaned' };

export type ToProcess =
  | ToBoth
  /** For this loop; descriptors of the first two went ahead over the control socket. */
  | (Exclude<ToMember, { type: 'left' }> & { readonly loop: number })
  /** For all loops. */
  | Extract<ToMember, { type: 'left' }>
  /** Accept from one more socket with this number; its descriptor was sent ahead. */
  | { readonly type: 'adopt'; readonly number: number }
  /** Take the stack of this loop. */
  | { readonly type: 'takeStack'; readonly index: number }
  /** Serve from this number of loops; surplus loops drain within `deadlineMs`. */
  | { readonly type: 'resize'; readonly loops: number; readonly deadlineMs: number };

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** True: clients may use HTTP/2. */
  readonly http2: boolean;
}

/** The program, its arguments, and the address for an export that does not listen itself. */
export interface AppSettings {
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
  readonly maxConnections: number;
  /** Each loop's share of the cores, for pools with workers of their own. */
  readonly coresPerLoop: number;
  /** Maximum number of shared workers, for all loops of the server. */
  readonly workers: number;
  readonly tls: TlsFiles | undefined;
}

/** The one argument of a process. */
export interface ProcessTicket {
  readonly kind: 'process';
  readonly parentPid: number;
  /** Number of the process: selects its rows of the scoreboard and its bell. */
  readonly process: number;
  /** Initial and maximum number; with a maximum of 1 the program runs in the main thread. */
  readonly loops: Range;
  readonly placement: Placement;
  /** A connection that no loop takes within this time is answered by 503, in ms; 0: never. */
  readonly overloadMs: number;
  /** Time for an added loop to listen, in ms; then it is ended. */
  readonly startTimeoutMs: number;
  /** Deadline of drains that the supervisor does not request, in ms. */
  readonly drainTimeoutMs: number;
  readonly app: AppSettings;
  readonly channel: unknown;
  /** Descriptors that the process inherits. */
  readonly controlSocketFd: number;
  readonly boardFd: number;
  readonly bellFds: readonly number[];
  /** The memory of `ActiveLeases`. */
  readonly activeLeasesFd: number;
  /** Socket of the thread that takes stacks of a program in the main thread. */
  readonly stackFd: number | undefined;
}

/** The `workerData` of a loop in a thread. */
export interface LoopTicket {
  readonly kind: 'loop';
  readonly process: number;
  readonly index: number;
  /** Key of the process's listener thread. */
  readonly acceptorKey: number;
  /** Open in the process while this loop starts. */
  readonly activeLeasesFd: number;
  readonly app: AppSettings;
  readonly channel: unknown;
}

/** The `workerData` of a thread beside a loop. */
export interface SideTicket {
  readonly kind: 'side';
  readonly channel: unknown;
  readonly data: unknown;
}

type Fields = ReadonlyMap<string, unknown>;

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null) throw unknownMessage(what);
  return new Map(Object.entries(value));
}

function unknownMessage(what: string): CodedError {
  return new CodedError(
    'WORKER_PROTOCOL',
    `this version of manycore cannot read ${what}: restart the server`,
  );
}

const fromBelow = 'a message of a process';

function integerIn(fields: Fields, name: string, min = 0): number {
  const value = fields.get(name);
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min) {
    throw unknownMessage(fromBelow);
  }
  return value;
}

function textIn(fields: Fields, name: string): string | undefined {
  const value = fields.get(name);
  if (value === undefined || typeof value === 'string') return value;
  throw unknownMessage(fromBelow);
}

function queryIn(fields: Fields): ListenQuery {
  const query = fieldsOf(fields.get('query'), fromBelow);
  const ticketKeys = textIn(query, 'ticketKeys');
  const group = textIn(query, 'group');
  return {
    address: query.get('address') === null ? null : (textIn(query, 'address') ?? null),
    port: integerIn(query, 'port', -1),
    addressType: integerIn(query, 'addressType', -1),
    backlog: integerIn(query, 'backlog'),
    isV6Only: query.get('isV6Only') === true,
    index: integerIn(query, 'index'),
    ...(ticketKeys !== undefined && { ticketKeys }),
    ...(group !== undefined && { group }),
  };
}

function errorIn(fields: Fields): TravelledError {
  const error = fieldsOf(fields.get('error'), fromBelow);
  const message = textIn(error, 'message') ?? '';
  return { message, code: textIn(error, 'code'), stack: textIn(error, 'stack') };
}

function descriptorsIn(fields: Fields, count: number): number[] {
  const fds = fields.get('fds');
  if (!Array.isArray(fds) || fds.length !== count) throw unknownMessage(fromBelow);
  return fds.map((fd) => (typeof fd === 'number' ? fd : -1));
}

function fromBoth(fields: Fields): FromBoth {
  const type = fields.get('type');
  switch (type) {
    case 'ready':
    case 'drained':
      return { type };
    case 'listen':
      return { type, request: integerIn(fields, 'request'), query: queryIn(fields) };
    case 'failed':
      return { type, error: errorIn(fields) };
    case 'release':
      return { type, request: integerIn(fields, 'request') };
    case 'unlisten':
      return { type, number: integerIn(fields, 'number') };
    default:
      throw unknownMessage(fromBelow);
  }
}

/** Throws `WORKER_PROTOCOL`; so do the parsers below. */
export function parseFromLoop(message: unknown): FromLoop {
  const fields = fieldsOf(message, fromBelow);
  const type = fields.get('type');
  switch (type) {
    case 'acquire':
      return {
        type,
        request: integerIn(fields, 'request'),
        fds: descriptorsIn(fields, channelFds.length),
      };
    case 'join':
      return { type };
    case 'offer':
      return { type, to: integerIn(fields, 'to'), fds: descriptorsIn(fields, memberFdCount) };
    case 'startThread': {
      const entry = textIn(fields, 'entry') ?? '';
      return { type, thread: integerIn(fields, 'thread'), entry, data: fields.get('data') };
    }
    case 'endThread':
      return { type, thread: integerIn(fields, 'thread') };
    default:
      return fromBoth(fields);
  }
}

export function parseFromProcess(message: unknown): FromProcess {
  const fields = fieldsOf(message, fromBelow);
  const number = (name: string): number => integerIn(fields, name);
  const type = fields.get('type');
  switch (type) {
    case 'acquire':
      return { type, loop: number('loop'), request: number('request') };
    case 'join':
      return { type, loop: number('loop') };
    case 'offer':
      return { type, loop: number('loop'), to: number('to') };
    case 'leaving':
      return { type };
    case 'loopEnded':
      return { type, loop: number('loop') };
    case 'loopFailed':
      return { type, index: number('index'), error: errorIn(fields) };
    case 'stack':
      return { type, index: number('index'), stack: textIn(fields, 'stack') };
    default:
      return fromBoth(fields);
  }
}

const meshTypes = ['members', 'offered', 'unreachable', 'left'];
const toBothTypes = ['answer', 'drain', 'granted', 'leaseEnded', ...meshTypes];
const toLoopTypes: ReadonlySet<unknown> = new Set([...toBothTypes, 'orphaned', 'threadEnded']);
const toProcessTypes: ReadonlySet<unknown> = new Set([
  ...toBothTypes,
  'adopt',
  'takeStack',
  'resize',
]);

/** Checks the type alone: messages from the supervisor's side are trusted. */
export function parseToLoop(message: unknown): ToLoop {
  const name = 'a message to a loop';
  if (toLoopTypes.has(fieldsOf(message, name).get('type'))) return message as ToLoop;
  throw unknownMessage(name);
}

export function parseToProcess(message: unknown): ToProcess {
  const name = 'a message of the supervisor';
  if (toProcessTypes.has(fieldsOf(message, name).get('type'))) return message as ToProcess;
  throw unknownMessage(name);
}

export function parseTicket(ticket: unknown): ProcessTicket | LoopTicket | SideTicket {
  if (typeof ticket === 'object' && ticket !== null && 'kind' in ticket) {
    if (ticket.kind === 'process') return ticket as ProcessTicket;
    if (ticket.kind === 'loop') return ticket as LoopTicket;
    if (ticket.kind === 'side') return ticket as SideTicket;
  }
  throw unknownMessage('the ticket of a process');
}

const maxCharacters = 64 * 1024;

/** Converts `thrown` for its way to the supervisor; very long texts are truncated. */
export function travelled(thrown: unknown): TravelledError {
  const cut = (text: string): string => text.slice(0, maxCharacters);
  if (!(thrown instanceof Error)) {
    return { message: cut(String(thrown)), code: undefined, stack: undefined };
  }
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
  return { message: cut(thrown.message), code, stack: thrown.stack && cut(thrown.stack) };
}
