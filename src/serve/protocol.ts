// What the supervisor, its processes and their loops tell each other, and the only place where unknown
// values become such messages. A process passes most of them on between the supervisor and its loops.
// Long (over 400 lines), because what one side says is to be read beside what the other answers.

import { type MemberName, memberFdCount } from '../channels/index.js';
import { CodedError } from '../errors.js';
import { channelFds, type GrantedLease } from '../worker/index.js';
import type { Placement, Range } from './options.js';

/** What a program asked for with `listen()`; -1 for what does not apply, as in Node's own cluster. */
export interface ListenQuery {
  /** An address, or the path of a Unix socket; `null` for all addresses. */
  readonly address: string | null;
  readonly port: number;
  /** 4 or 6, or -1 for a path. */
  readonly addressType: number;
  readonly backlog: number;
  readonly isV6Only: boolean;
  /** Of a TLS server, in hex: all loops use those of the first, so that sessions resume anywhere. */
  readonly ticketKeys?: string | undefined;
  /** Counts the calls of one loop for the same address: each `listen(0)` is a socket of its own. */
  readonly index: number;
  /** Of a part of the program whose `listen(0)` others do not share. */
  readonly group?: string | undefined;
}

/** Where a socket listens, as `server.address()` tells it. */
export type BoundAddress =
  | { readonly address: string; readonly port: number; readonly family: 'IPv4' | 'IPv6' }
  | string;

/** The answer to a query: the socket's number in all processes, or why there is none. */
export type ListenAnswer =
  | {
      readonly number: number;
      readonly address: BoundAddress;
      readonly ticketKeys?: string | undefined;
    }
  /** The system's error, as libuv numbers it: negative; and what else there is to say of it. */
  | { readonly errno: number; readonly reason?: string | undefined };

/** An error on its way to the supervisor. */
export interface TravelledError {
  readonly message: string;
  readonly code: string | undefined;
  readonly stack: string | undefined;
}

/** What a loop tells its process, and a process the supervisor. */
type FromBoth =
  | { readonly type: 'listen'; readonly request: number; readonly query: ListenQuery }
  /** The program is loaded and listens. Of a process: all its loops are. */
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly error: TravelledError }
  /** Every connection is closed. */
  | { readonly type: 'drained' }
  /** It listens on the socket with this number no more. Of a process: none of its loops does. */
  | { readonly type: 'unlisten'; readonly number: number }
  /** Ends a lease that was requested, or granted. */
  | { readonly type: 'release'; readonly request: number };

export type FromLoop =
  | FromBoth
  /** Joins the mesh: the loop gets a channel to each other member. */
  | { readonly type: 'join' }
  /** Offers a channel to the member `to`; `fds` are the process's to close. */
  | { readonly type: 'offer'; readonly to: number; readonly fds: readonly number[] }
  /** It wants a thread beside it, with this program; `data` is for that. */
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
  /** It drains, and has taken its last connection. */
  | { readonly type: 'leaving' }
  | { readonly type: 'loopEnded'; readonly loop: number }
  /** One that was added has failed before it listened; the others serve. */
  | { readonly type: 'loopFailed'; readonly index: number; readonly error: TravelledError }
  /** Where a loop is; without `stack` it cannot be told. */
  | { readonly type: 'stack'; readonly index: number; readonly stack?: string | undefined };

/** What the supervisor tells a process, and a process its loops. */
type ToBoth =
  | { readonly type: 'answer'; readonly request: number; readonly answer: ListenAnswer }
  /** Take no connection any more, answer what is there, close within `deadlineMs`. */
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
  /** The loop's own number, and the members that it offers channels to. The fd, the loop's, is of the arena. */
  | (ToMember & { readonly type: 'members'; readonly fds: readonly number[] })
  /** A channel that another member offers; `fds` are the loop's. */
  | (ToMember & { readonly type: 'offered'; readonly fds: readonly number[] })
  | (ToMember & { readonly type: 'unreachable' | 'left' })
  /** A thread beside it is gone, with what it threw. */
  | {
      readonly type: 'threadEnded';
      readonly thread: number;
      readonly error: TravelledError | undefined;
    }
  /** The supervisor is gone: no lease is granted any more. */
  | { readonly type: 'orphaned' };

export type ToProcess =
  | ToBoth
  /** For this loop; descriptors went ahead over the control socket for the first two. */
  | (Exclude<ToMember, { type: 'left' }> & { readonly loop: number })
  /** For all loops. */
  | Extract<ToMember, { type: 'left' }>
  /** Accept from one more socket with this number; its descriptor was sent ahead. */
  | { readonly type: 'adopt'; readonly number: number }
  /** Tell where this loop is. */
  | { readonly type: 'askStack'; readonly index: number }
  /** Serve from so many loops; those that are too many drain within `deadlineMs`. */
  | { readonly type: 'resize'; readonly loops: number; readonly deadlineMs: number };

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Whether clients may speak HTTP/2. */
  readonly http2: boolean;
}

/** What the program's export listens on when it does not listen itself, and what it is given. */
export interface AppSettings {
  /** The absolute path of the program. */
  readonly path: string;
  readonly args: readonly string[];
  readonly port: number;
  /** Also for a program that listens by itself: in `PORT`. */
  readonly isPortGiven: boolean;
  readonly host: string | undefined;
  /** The path of a Unix socket instead. */
  readonly unix: string | undefined;
  /** Whose requests it gets; none: all. */
  readonly serverNames: readonly string[];
  readonly maxConnections: number;
  /** Each loop's share of the cores, for workers of pools of its own. */
  readonly coresPerLoop: number;
  /** How many workers the server has at most, for all its loops. */
  readonly workers: number;
  readonly tls: TlsFiles | undefined;
}

/** What a process is started with, as its one argument. */
export interface ProcessTicket {
  readonly kind: 'process';
  readonly parentPid: number;
  /** Its number: rows of the scoreboard, bell. */
  readonly process: number;
  /** To begin with, and at most; with one at most the program runs in the main thread. */
  readonly loops: Range;
  readonly placement: Placement;
  /** A connection that no loop takes for so long is answered by 503, in ms; 0: never. */
  readonly overloadMs: number;
  /** A loop that is added listens within this time, or is ended. */
  readonly startTimeoutMs: number;
  /** For drains that the supervisor does not ask for. */
  readonly drainTimeoutMs: number;
  readonly app: AppSettings;
  readonly channel: unknown;
  /** Descriptors that it was started with. */
  readonly controlSocketFd: number;
  readonly boardFd: number;
  readonly bellFds: readonly number[];
  /** The memory of `ActiveLeases`. */
  readonly activeLeasesFd: number;
  /** Where stacks of a program in the main thread are asked for. */
  readonly stackFd: number | undefined;
}

/** What a loop in a thread is started with, as its `workerData`. */
export interface LoopTicket {
  readonly kind: 'loop';
  readonly process: number;
  readonly index: number;
  /** Of the process's listener thread. */
  readonly acceptorKey: number;
  /** Open in the process as long as this loop starts. */
  readonly activeLeasesFd: number;
  readonly app: AppSettings;
  readonly channel: unknown;
}

/** What a thread beside a loop is started with. */
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
    `${what} is none that this version of manycore knows: restart the server`,
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

/** Throws `WORKER_PROTOCOL`; so do those below. */
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
  'askStack',
  'resize',
]);

/** What comes from above is believed, but for its type. */
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

/** `thrown` as it travels to the supervisor; the end of what is very long stays behind. */
export function travelled(thrown: unknown): TravelledError {
  const cut = (text: string): string => text.slice(0, maxCharacters);
  if (!(thrown instanceof Error)) {
    return { message: cut(String(thrown)), code: undefined, stack: undefined };
  }
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
  return { message: cut(thrown.message), code, stack: thrown.stack && cut(thrown.stack) };
}
