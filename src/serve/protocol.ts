// Messages between the supervisor, its processes and their loops, and the only place where unknown values
// become such messages. Each travels in an envelope, which a process forwards between its loops and the
// supervisor without reading it. One table has all kinds of messages by direction, with a reader for each
// field: types and parsers are made from it. Not here: how envelopes and descriptors are sent (shared/link.ts).

import { type MemberName, memberFdCount } from '../channels/index.js';
import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';
import { channelFds, type GrantedLease } from '../worker/index.js';
import type { SocketHandle } from './shared/socket-handle.js';

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

/** An error on its way to another thread or process. */
export interface TravelledError {
  readonly message: string;
  readonly code: string | undefined;
  readonly stack: string | undefined;
}

/** A message on its way. */
export interface Envelope<Body = unknown> {
  /**
   * Number of the loop, or of the thread beside one, that sends or gets the message: given by its process,
   * and not used again. Absent for a message of or to the process itself.
   */
  readonly loop?: number | undefined;
  /** Number that a loop has given to its request; the answer has the same. */
  readonly id?: number;
  readonly body: Body;
  readonly fds?: readonly number[];
  /** A listening socket of which the receiver gets a copy; over links that carry handles. */
  readonly handle?: SocketHandle | undefined;
}

/** All kinds of messages. A kind that is missing in the table of its direction is refused. */
const kinds = {
  loopToSupervisor: {
    listen: { query: queryOf },
    /** The loop has stopped listening on the socket with this number. */
    unlisten: { number: integerOf },
    /** Requests a lease in a worker of the server; the descriptors are of its channel. */
    acquire: { fds: descriptorsOf(channelFds.length) },
    /** Ends the lease that was requested with this id, granted or not. */
    release: {},
    /** Becomes a candidate for the functions of `onlyOne`. */
    stand: {},
    /** Ends this: the loop runs no such function any more. */
    resign: {},
    /** Reports why the program is not ready for clients, or that it is. */
    readiness: { obstacle: optionalTextOf },
    /** Lines for the access log. */
    access: { lines: textOf },
    /** Joins the mesh: the loop gets a channel to each other member. */
    join: {},
    /** Offers a channel to the member `to`. */
    offer: { to: integerOf, fds: descriptorsOf(memberFdCount) },
    /** The same without the native core, over the socket at this path. */
    offerAt: { to: integerOf, path: textOf },
  },
  loopToProcess: {
    /** The program is loaded and listens. */
    ready: {},
    failed: { error: errorOf },
    /** Answers `serve`. */
    serving: {},
    /** A loop that drains takes no new connection any more. */
    left: {},
    /** Every connection is closed. */
    drained: {},
    /** Starts a thread beside the loop, with this program and `data` for it. */
    startThread: { entry: textOf, data: trusted<unknown>() },
    endThread: {},
    /** Makes this folder the current one of the process. */
    changeFolder: { folder: textOf },
  },
  processToSupervisor: {
    /** All its loops listen. */
    ready: {},
    failed: { error: errorOf },
    /** The process drains, and has taken its last connection. */
    leaving: {},
    loopEnded: { ended: integerOf },
    /** A loop that was added has failed before it listened; the others serve. */
    loopFailed: { index: integerOf, error: errorOf },
    /** A loop has ended unrequested, and is started again after `delayMs`; the others go on. */
    loopLost: { index: integerOf, error: errorOf, delayMs: integerOf },
    /** The stack of a loop; without `stack` it could not be taken. */
    stack: { index: integerOf, stack: optionalTextOf },
    /** Rows of its scoreboard, where that is not shared memory (portable/rows.ts). */
    rows: { rows: rowsIn },
  },
  toLoop: {
    /** Answers `listen`. */
    answer: { answer: trusted<ListenAnswer>() },
    /** Answers `acquire`. */
    granted: { lease: trusted<GrantedLease>() },
    /** The lease has ended, or is refused for the reason in `message`. */
    leaseEnded: {
      exitCode: trusted<number | null>(),
      signal: trusted<string | null>(),
      message: trusted<string | undefined>(),
    },
    /**
     * Answers `join`: its own name, and the members that it offers channels to. The fd is the arena's; without the
     * native core there is none.
     */
    members: { self: trusted<MemberName>(), others: trusted<readonly MemberName[]>() },
    /** A channel that another member offers. */
    offered: { from: trusted<MemberName>(), path: trusted<string | undefined>() },
    /** A member has left; all survivors get the same message. */
    left: { member: trusted<MemberName>(), survivors: trusted<readonly MemberName[]>() },
    /** The loop is the one that runs the functions of `onlyOne`, until it resigns or ends. */
    elected: {},
    /** A message of the loop could not be delivered. */
    returned: { message: trusted<string>(), body: trusted<ReturnedBody>() },
    /** From its process, where loops listen themselves: take connections from now on. */
    serve: {},
    /** From its process: as for a process. */
    drain: { deadlineMs: trusted<number>(), isReplaced: trusted<boolean>() },
    /** From its process: the thread that it has started with this id has ended, with the error that it threw. */
    threadEnded: { error: trusted<TravelledError | undefined>() },
    /** From its process: answers `changeFolder`, with the error if there was one. */
    folderChanged: { error: trusted<TravelledError | undefined>() },
    /** From its process: the supervisor is gone, and answers no request any more. */
    orphaned: {},
  },
  toProcess: {
    /**
     * Take no new connection, finish open requests, close within `deadlineMs`. `isReplaced`: others serve in its
     * place, so idle connections stay open as long as they were promised to. A second one may take that back.
     */
    drain: { deadlineMs: trusted<number>(), isReplaced: trusted<boolean>() },
    /** Accept from one more socket with this number. */
    adopt: { number: trusted<number>() },
    /** Close the sockets with this number: no loop listens on them any more. */
    drop: { number: trusted<number>() },
    /** Take the stack of this loop. */
    takeStack: { index: trusted<number>() },
    /** Serve from this number of loops; surplus loops drain within `deadlineMs`. */
    resize: { loops: trusted<number>(), deadlineMs: trusted<number>() },
  },
};

/** The fields that are used of a message that was returned. */
interface ReturnedBody {
  readonly type: string;
  readonly to?: number;
}

type Reader<Value> = (value: unknown) => Value;
type Kinds = Readonly<Record<string, Readonly<Record<string, Reader<unknown>>>>>;
type Fields<Readers extends Kinds[string]> = {
  readonly [Name in Exclude<keyof Readers, 'fds'>]: ReturnType<Readers[Name]>;
};
/** Messages of a table as they are sent, in an envelope. */
type Body<Table extends Kinds> = {
  [Type in keyof Table]: { readonly type: Type } & Fields<Table[Type]>;
}[keyof Table];

/** Parts of an envelope that every message has once it has arrived. */
interface Arrived {
  readonly id: number;
  readonly fds: readonly number[];
}
export type ArrivedEnvelope = Envelope & Arrived;
type Message<Table extends Kinds> = Body<Table> & Arrived;

export type FromLoop = Body<typeof kinds.loopToSupervisor> | Body<typeof kinds.loopToProcess>;
export type FromProcess = Body<typeof kinds.processToSupervisor>;
export type ToLoop = Body<typeof kinds.toLoop>;
export type ToProcess = Body<typeof kinds.toProcess>;
/** Messages that have arrived. */
export type LoopRequest = Message<typeof kinds.loopToSupervisor>;
export type ProcessRequest = Message<typeof kinds.loopToProcess>;
export type LoopMessage = Message<typeof kinds.toLoop>;

const fromBelow = 'a message of a process';

function unknownMessage(what: string): CodedError {
  return new CodedError(
    'WORKER_PROTOCOL',
    `this version of manycore cannot read ${what}: restart the server`,
  );
}

function fieldsOf(value: unknown, what: string): ReadonlyMap<string, unknown> {
  if (typeof value !== 'object' || value === null) throw unknownMessage(what);
  return new Map(Object.entries(value));
}

// Readers of fields. Messages from below are checked: a program in the process may send anything.

function integerAbove(value: unknown, min: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min) return value;
  throw unknownMessage(fromBelow);
}

function integerOf(value: unknown): number {
  return integerAbove(value, 0);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw unknownMessage(fromBelow);
}

function optionalTextOf(value: unknown): string | undefined {
  return value === undefined ? undefined : textOf(value);
}

function queryOf(value: unknown): ListenQuery {
  const fields = fieldsOf(value, fromBelow);
  const address = fields.get('address');
  const ticketKeys = optionalTextOf(fields.get('ticketKeys'));
  const group = optionalTextOf(fields.get('group'));
  return {
    address: address === null ? null : (optionalTextOf(address) ?? null),
    port: integerAbove(fields.get('port'), -1),
    addressType: integerAbove(fields.get('addressType'), -1),
    backlog: integerOf(fields.get('backlog')),
    isV6Only: fields.get('isV6Only') === true,
    index: integerOf(fields.get('index')),
    ...(ticketKeys !== undefined && { ticketKeys }),
    ...(group !== undefined && { group }),
  };
}

function errorOf(value: unknown): TravelledError {
  const fields = fieldsOf(value, fromBelow);
  const message = optionalTextOf(fields.get('message')) ?? '';
  const code = optionalTextOf(fields.get('code'));
  return { message, code, stack: optionalTextOf(fields.get('stack')) };
}

/** Words of rows: each the index of a loop, then the words. */
function rowsIn(value: unknown): readonly (readonly number[])[] {
  const isRow = (row: unknown): row is readonly number[] =>
    Array.isArray(row) && row.every((word) => Number.isInteger(word) && word >= 0);
  if (Array.isArray(value) && value.every(isRow)) return value;
  throw unknownMessage(fromBelow);
}

function descriptorsOf(count: number): Reader<readonly number[]> {
  return (value) => {
    if (Array.isArray(value) && value.length === count) return value;
    throw unknownMessage(fromBelow);
  };
}

/** Reads a field unchecked: messages from the supervisor's side are trusted. */
function trusted<Value>(): Reader<Value> {
  return (value) => value as Value;
}

/** Reads an envelope, and leaves its body. Throws `WORKER_PROTOCOL`; so do the parsers below. */
export function parseEnvelope(message: unknown): ArrivedEnvelope {
  const fields = fieldsOf(message, fromBelow);
  const loop = fields.get('loop');
  const fds = fields.get('fds') ?? [];
  if (!Array.isArray(fds)) throw unknownMessage(fromBelow);
  return {
    loop: loop === undefined ? undefined : integerOf(loop),
    id: integerOf(fields.get('id') ?? 0),
    body: fields.get('body'),
    fds: fds.map(integerOf),
  };
}

/** Returns `undefined` for a kind that the table does not have. */
function read<Table extends Kinds>(
  table: Table,
  { id = 0, body, fds = [] }: Envelope,
  what: string,
): Message<Table> | undefined {
  const fields = fieldsOf(body, what);
  const type = fields.get('type');
  if (typeof type !== 'string' || !Object.hasOwn(table, type)) return undefined;
  const readers = Object.entries(table[type] ?? {});
  const own = readers.map(([name, readField]) => [
    name,
    readField(name === 'fds' ? fds : fields.get(name)),
  ]);
  return Object.fromEntries([['type', type], ['id', id], ['fds', fds], ...own]);
}

function known<Value>(message: Value | undefined, what: string): Value {
  if (message === undefined) throw unknownMessage(what);
  return message;
}

/** Reads a message that a process has forwarded from a loop. */
export function parseFromLoop(envelope: Envelope): LoopRequest {
  return known(read(kinds.loopToSupervisor, envelope, fromBelow), fromBelow);
}

export function parseFromProcess(envelope: Envelope): FromProcess {
  return known(read(kinds.processToSupervisor, envelope, fromBelow), fromBelow);
}

/** Reads a message from a loop to its process; `undefined`: it is for the supervisor. */
export function parseForProcess(envelope: Envelope): ProcessRequest | undefined {
  const message = read(kinds.loopToProcess, envelope, fromBelow);
  const { type } = Object(envelope.body);
  if (message === undefined && !Object.hasOwn(kinds.loopToSupervisor, type)) {
    throw unknownMessage(fromBelow);
  }
  return message;
}

export function parseToLoop(envelope: Envelope): LoopMessage {
  const name = 'a message to a loop';
  return known(read(kinds.toLoop, envelope, name), name);
}

export function parseToProcess(envelope: Envelope): ToProcess & Arrived {
  const name = 'a message of the supervisor';
  return known(read(kinds.toProcess, envelope, name), name);
}

/** Makes the message that returns one which could not be delivered. */
export function returned({ body }: Envelope, reason: unknown): ToLoop {
  return { type: 'returned', message: messageOf(reason), body: body as ReturnedBody };
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
