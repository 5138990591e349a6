// Loads the native binary once for each thread; `nativeProblem` explains why it did not load. Calls and
// maps work without it, over other channels: `nativeBinding()` then returns `undefined`.
// Long (over 400 lines): it declares everything that the binary exports.
// Not here: what the binding is used for (channels/shm, worker).

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { CodedError, isErrorCode } from './errors.js';
import {
  builtPlatforms,
  messageOf,
  packageVersion,
  platformName,
  prototypeRemedy,
} from './lib/index.js';

/** A mapped segment (crates/node/src/segment.rs). */
export interface NativeSegment {
  /** Size of the whole segment. */
  readonly sizeBytes: number;
  readonly ringBytes: number;
  readonly slotCount: number;
  /** Numbers of the worker's side and of the parent's. */
  readonly owner: number;
  readonly parentOwner: number;
  readonly requestAt: number;
  readonly replyAt: number;
  /** The whole segment; mapped as long as the buffer is reachable. */
  buffer(): ArrayBuffer;
  /** Rust's implementation of the ring, while there is no other writer, or reader, on that side. */
  tryPush(isParent: boolean, kind: number, task: number, target: number, body: Buffer): boolean;
  tryPop(isParent: boolean): NativeFrame | null;
}

export interface NativeFrame {
  readonly kind: number;
  readonly task: number;
  readonly target: number;
  readonly body: Buffer;
  readonly isSpilled: boolean;
}

/** Serves the channels in this thread's event loop (crates/node/src/event_loop.rs). */
export interface NativeLoop {
  /** The eventfd that wakes this loop: the loop's own, open until `releaseBell` and while ends use it. */
  holdBell(): number;
  releaseBell(): void;
  /** Watches an end; `bell` -1: the loop's own eventfd. Takes both descriptors over. */
  attach(
    segment: NativeSegment,
    isParent: boolean,
    bell: number,
    peerBell: number,
    maySpin: boolean,
  ): number;
  /** Watches an end whose bell is one end of a stream, for both directions. Takes it over. */
  attachStream(segment: NativeSegment, isParent: boolean, stream: number, maySpin: boolean): number;
  detach(end: number): void;
  /**
   * Int32 of an end, which its peer cannot reach: the wish of JavaScript (1 keeps the event loop alive, else 0;
   * the loop reads it before it sleeps), the present state, and, with a bell of its own, the rings of the peer,
   * the deliveries that its words have caused, and 1 once it has closed the bell.
   */
  endWords(end: number): ArrayBuffer;
  /** Applies the first word of all ends now. */
  settleRefs(): void;
  ring(end: number): void;
}

/** Descriptors by number, with an owner: what is not released is closed with this object. */
export interface NativeDescriptors {
  /** Creates a segment between these two owners. */
  createSegment(ringBytes: number, slotCount: number, owner: number, parentOwner: number): number;
  createEventfd(): number;
  /** Both ends of a non-blocking Unix socket: for `sendDescriptors` and `receive`, or for `attachStream`. */
  createSocketPair(): number[];
  /** A listening socket that shares its port with others made so; or the system's error, negative. */
  listenShared(address: string, port: number, backlog: number, isV6Only: boolean): number;
  /** A second descriptor of the same file, closed on exec. */
  duplicate(fd: number): number;
  /** The descriptors of the next message over a Unix socket; throws when none is there. */
  receive(socket: number): number[];
  /** Releases `fd` to the caller, which must close it. */
  release(fd: number): number;
  closeAll(): void;
}

/** Blocks for payloads (crates/node/src/arena.rs); an offset of -1: no memory is left. */
export interface NativeArena {
  fd(): number;
  /** Takes a number for a worker. */
  takeOwner(): number;
  retireOwner(owner: number): void;
  /** Takes the numbers of a member and returns the first; only in the process that created the arena. */
  takeMember(): number;
  retireMember(first: number): void;
  /** Unmaps the memory of a member as soon as no view needs it. */
  unmapMember(first: number): void;
  place(bytes: Uint8Array): number;
  allocate(sizeBytes: number): number;
  free(offset: number): void;
  /**
   * `isCounted`: V8 counts its bytes, and collects the whole heap for a few large ones; else where it can be
   * avoided. Once the buffer was collected, `takeCollected` returns its key, if it has one.
   */
  view(
    owner: number,
    offset: number,
    sizeBytes: number,
    isCounted: boolean,
    collectedKey?: number,
  ): ArrayBuffer;
  takeCollected(): number[];
  readonly usedCount: number;
  release(): void;
}

/** The scoreboard of a server (crates/core/src/accept/board.rs). */
export interface NativeBoard {
  /** The descriptor for the processes; only of a board that was created here and is not closed. */
  fd(): number;
  buffer(): ArrayBuffer;
  /** Closes the descriptor; the buffer stays. */
  close(): void;
}

/** The listener thread of this process (crates/core/src/accept/acceptor.rs). */
export interface NativeAcceptor {
  /** The key with which threads of this process create the inboxes of their loops. */
  readonly key: number;
  /** Accepts from one more listening socket, or control socket of a router; takes the descriptor over. */
  addSocket(number: number, fd: number): void;
  removeSocket(number: number): void;
  /** Makes the thread read the rows of this process again, after one has changed. */
  wake(): void;
  /** The thread ends when its inboxes are closed, too. */
  close(): void;
}

/** Divides the connections of one listening socket among apps, by name (crates/core/src/accept/router.rs). */
export interface NativeRouter {
  /** Accepts from now on. */
  accept(): void;
  /**
   * Sends connections of clients that request one of `names`, without names all, into `near`, one end of a Unix
   * socket; processes receive them from `far`. Takes both over. Returns the key for `remove`, or -1 when another app
   * has such a name.
   */
  add(names: readonly string[], near: number, far: number): number;
  /**
   * The same for an app whose clients stay with a loop of `board`; without names all clients. Returns the key for
   * `addProcess`, `leave` and `remove`, or -1.
   */
  addSticky(names: readonly string[], board: NativeBoard, kind: string, name: string): number;
  /**
   * Sends connections for loops of `process` into `near`, one end of a Unix socket; the process receives them from
   * `far` as from the listening socket with this number. Takes both over.
   */
  addProcess(key: number, process: number, socket: number, near: number, far: number): void;
  /** Sends nothing to `process` any more; what it has not taken goes to others. */
  leave(key: number, process: number): void;
  remove(key: number): void;
  /**
   * Accepts nothing any more, and passes the connections that no process has taken on over `successor`, one end of a
   * Unix socket. Takes it over.
   */
  handOver(successor: number): void;
  /** True: its thread has ended, as after a hand-over. */
  hasEnded(): boolean;
  /** Ends its thread and closes the socket; a hand-over goes on. */
  close(): void;
}

/** This event loop's inbox at the listener thread (crates/node/src/loop_inbox.rs). */
export interface NativeLoopInbox {
  /**
   * Uint32: a count, then socket number and descriptor for each connection. The reader sets the count
   * to 0 and then owns the descriptors.
   */
  batch(): ArrayBuffer;
  board(): ArrayBuffer;
  /** Uint32 for each descriptor (crates/core/src/accept/idle.rs); `undefined`: connections stay at this loop. */
  idleWords(): ArrayBuffer | undefined;
  /** True: waiting for connections keeps the event loop alive. */
  hold(isHeld: boolean): void;
  /** Makes the listener thread read this loop's row again, after it has changed. */
  wake(): void;
  /** Closes the inbox, unless a connection waits in it (false); for a loop whose row says that it drains. */
  tryLeave(): boolean;
  /** True: no connection of a socket comes any more; for one that the row does not list. */
  isDoneWith(socket: number): boolean;
  /** A thread of this process answers requests for files from now on. False: this server cannot. */
  serveFiles(keepAliveSeconds: number): boolean;
  /** Adds what was sent for a target; `fields`: `[name, value, …]`. `file` stays the caller's. */
  addFile(
    target: Buffer,
    acceptEncoding: Buffer,
    path: string,
    file: number,
    fields: readonly string[],
  ): boolean;
  /** Gives a connection back to that thread; after true the caller closes its own descriptor. */
  takeBack(connection: number, bytesRead: number): boolean;
  /** Connections that were not taken go to other loops of this process. */
  close(): void;
}

/** Sends a file into a socket (crates/node/src/file_sender.rs). */
export interface NativeFileSender {
  /** Sends bytes; returns their number: 0 at the end of the file, -1 when the client has to read first. */
  send(offset: number, count: number): number;
  /** Calls `onRoom` once there is room, or the connection has failed. */
  wait(): void;
  close(): void;
}

/** A program to start (crates/node/src/program.rs). */
export interface NativeProgramOptions {
  readonly path: string;
  readonly args: readonly string[];
  /** The whole environment, as pairs. */
  readonly env: readonly (readonly [string, string])[];
  readonly folder: string;
  readonly pipeBytes: number;
}

/** In a process group of its own; both descriptors are the caller's to close. */
export interface NativeProgram {
  readonly pid: number;
  readonly stdin: number;
  readonly stdout: number;
}

/** One system call, of one thread or of child processes of one name; times in ns. */
export interface NativeTracedCall {
  /** Number of the system call on this architecture. */
  readonly number: number;
  readonly count: number;
  readonly errors: number;
  /** From entering to leaving it; calls that have not returned are not in it. */
  readonly tookNs: number;
  /** Time off the CPU within `tookNs`; 0 when the tracer cannot measure it. */
  readonly blockedNs: number;
}

/** A thread, or with `tid` 0 all child processes of one name; without a name all that had no room. */
export interface NativeTracedRecord {
  readonly pid: number;
  readonly tid: number;
  readonly isEnded: boolean;
  /** True: a child process that has not yet started a program of its own. */
  readonly isStarting: boolean;
  readonly tasks: number;
  /** CPU time of those of its tasks that have ended, since the start of each. */
  readonly runNs: number;
  readonly name: string;
  readonly calls: readonly NativeTracedCall[];
}

/** Counts system calls of other programs in the kernel (crates/core/src/trace/). */
export interface NativeTracer {
  /** Follows one more process; at most 4,096 at once. */
  follow(pid: number): void;
  /** Stops following a process that has ended: its number may be reused. */
  unfollow(pid: number): void;
  read(): NativeTracedRecord[];
  /** Makes the kernel measure the time of the programs that count, or ends that. */
  takeOwnTime(isTaken: boolean): void;
  ownTimeNs(): number;
  close(): void;
}

/** Counts the collections of this thread (crates/node/src/collections.rs). */
export interface NativeCollections {
  start(): void;
  stop(): void;
  /** For each type of V8's `GCType`, by its bit: number, ms in all, and ms of the longest. */
  figures(): number[];
}

/** Support of the kernel for each feature: empty when it works, else the reason. */
export interface KernelFeatures {
  readonly memfd: string;
  readonly eventfd: string;
  readonly pidfd: string;
}

/** The number of cores granted to this process, and the sentence that explains it. */
export interface GrantedCores {
  readonly count: number;
  readonly reason: string;
}

/** Reads what functions captured, without the inspector (crates/node/src/closure_reader.rs). */
export interface NativeClosureReader {
  /**
   * Learns where the code of `fn` has these variables. Returns the number of the code; 0: they cannot be read
   * here. The name `this` is that of the function around an arrow.
   */
  learn(fn: object, names: readonly string[]): number;
  /** Forgets the code of `fn`. */
  forget(fn: object): void;
  /**
   * Appends the values that `fn` has captured, in the order of `learn`. Returns the number of its code; 0: the
   * code is not known, or something cannot be read now. The negated number: the code around it was edited, and
   * must be learnt anew.
   */
  read(fn: object, values: unknown[]): number;
  /** Appends the values of these variables of `fn`, and learns nothing. False: they cannot be read. */
  readOnce(fn: object, names: readonly string[], values: unknown[]): boolean;
  /** The name that V8 has for the script of `fn`, or '' where it has none; `null`: it cannot be read here. */
  scriptName(fn: object): string | null;
  /** Learns all scopes around the code of `fn`; `null`: they cannot be read here. */
  learnScopes(fn: object): LearntScopes | null;
  /** Forgets the scopes around the code of `fn`. */
  forgetScopes(fn: object): void;
  /**
   * Appends the values of all variables around `fn`, in the order of the learnt names; `unset` for each without one.
   * Returns the number of its code; 0: it is not known, something cannot be read now, or the realm of `fn` is not
   * that of `ofRealm`, a function with a script.
   */
  readScopes(fn: object, ofRealm: () => void, unset: unknown, values: unknown[]): number;
  /** Contexts of classic scripts with variables at their top, in that realm; -1: not known. */
  scriptContexts(ofRealm: () => void): number;
  /** True: so many steps up, the two functions have the same context; `null`: that cannot be read. */
  sharesContext(fn: object, depth: number, other: object, otherDepth: number): boolean | null;
}

/** The scopes around a piece of code, innermost first: those that have variables. */
export interface LearntScopes {
  readonly number: number;
  readonly names: readonly (readonly string[])[];
  /** Steps to the context of each. */
  readonly depths: readonly number[];
  /** True: the value of `this` of the function around an arrow is read behind them. */
  readonly hasThis: boolean;
}

/** This thread in the transactional memory of its program (crates/node/src/transactions.rs). */
export interface NativeTransactions {
  /** All words that the participants share. */
  words(): ArrayBufferLike;
  /** Memory for what the next calls read. */
  desk(): ArrayBufferLike;
  /** Indices of words, in the order of `placeNames` (stm/space.ts). */
  places(): number[];
  /** A function that takes memory for an object of so many words, and returns its index. */
  taker(): (words: number) => number;
  /** The same for a transaction that frees memory: it may use a reserve. */
  takerToFree(): (words: number) => number;
  keepTaken(): void;
  giveBack(kept: number): void;
  /** A function that commits what the desk has; it returns 0 at a conflict, without an effect. */
  committer(): () => number;
  /** A later snapshot for the reads on the desk, into its first word; false: one has changed. */
  extend(): boolean;
  /** Returns when the object may have a version that a snapshot of now can have. */
  awaitObject(lock: number): void;
  /** Makes changes of what the desk has as reads wake this thread; false: one has changed already. */
  watch(): boolean;
  beginSleep(): void;
  endSleep(): void;
  takeWake(): void;
  /** Keeps others from committing; false: another thread does. */
  beginSerial(): boolean;
  endSerial(): void;
  /** Counts of all threads, in the order of `figureNames` (stm/stats.ts). */
  figures(): number[];
  /** Objects that conflicts were about of late: for each its index, 1 for a collection, and how many. */
  contended(): number[];
  /** Frees memory that no transaction sees any more. */
  tidy(): void;
  /** Gives this thread's place back: nothing may be called afterwards. */
  close(): void;
}

/** Everything that the binary exports; `parseBinding` holds the names. */
export interface NativeBinding {
  readonly NativeSegment: {
    open(fd: number): NativeSegment;
    /** The same in a guest, where there are no seals; `sizeBytes` is that of the segment. */
    openInGuest(fd: number, sizeBytes: number): NativeSegment;
  };
  readonly NativeDescriptors: new () => NativeDescriptors;
  readonly NativeArena: {
    /** `onCollected` is called when `takeCollected` has keys. */
    ofProcess(onCollected: () => void): NativeArena;
    /** Opens the arena in a member with the numbers from `first` on. */
    join(fd: number, first: number, onCollected: () => void): NativeArena;
    open(fd: number, owner: number, onCollected: () => void): NativeArena;
  };
  readonly NativeLoop: new (deliver: () => void) => NativeLoop;
  readonly NativeBoard: {
    create(processes: number, loops: number): NativeBoard;
    /** Takes the descriptor over. */
    open(fd: number): NativeBoard;
  };
  /**
   * `bells`: eventfds, one for each process of the board, taken over. Connections that no loop takes for
   * `patienceMs` are answered by 503 if their clients speak HTTP; 0: never. `handover`: both ends of the
   * socket for connections that leave blocked loops, taken over; empty: they stay.
   */
  readonly NativeAcceptor: new (
    board: NativeBoard,
    process: number,
    bells: readonly number[],
    policy: 'least-loaded' | 'round-robin' | 'kernel' | 'reuseport' | 'sticky',
    patienceMs: number,
    handover: readonly number[],
  ) => NativeAcceptor;
  /** Takes the listening socket over. */
  /** `predecessor`: a Unix socket over which connections of an earlier router come, or -1. Takes both over. */
  readonly NativeRouter: new (
    listener: number,
    predecessor: number,
  ) => NativeRouter;
  /** `deliver` is called when the batch holds connections. */
  readonly NativeLoopInbox: new (
    key: number,
    index: number,
    deliver: () => void,
  ) => NativeLoopInbox;
  /** Both descriptors stay the caller's; `onRoom` is called once after each `wait`. */
  readonly NativeFileSender: new (
    socket: number,
    file: number,
    onRoom: () => void,
  ) => NativeFileSender;
  readonly NativeTracer: {
    /** `perThreadNames`: programs whose threads have records of their own as children, for `ebpf`. */
    start(
      method: 'ebpf' | 'raw',
      pids: readonly number[],
      perThreadNames: readonly string[],
    ): NativeTracer;
  };
  /**
   * `unset` captured one variable, `x`, before its declaration ran; `assigned` captured `x`, which another
   * function has set to an integer. The constructor throws where functions have another layout.
   */
  readonly NativeClosureReader: new (
    unset: () => unknown,
    assigned: () => unknown,
    numbers: () => unknown,
  ) => NativeClosureReader;
  /** `id`, `sizeBytes`: the number and the size of the memory, if this is its first participant. */
  readonly NativeTransactions: new (
    id: number,
    sizeBytes: number,
    patienceMs: number,
    onWake: () => void,
  ) => NativeTransactions;
  /**
   * The descriptor of the program's transactional memory (crates/node/src/space_file.rs); it stays the binary's.
   * `sizeBytes`: that of the memory, if it is new.
   */
  spaceFd(sizeBytes: number): number;
  /** Takes over the descriptor that the starter of this process has passed. */
  adoptSpace(fd: number): void;
  /** Lets those that sleep complete what a worker of this process, which has just ended, was committing. */
  noteEnd(): void;
  /** The constructor throws when this runtime does not report collections. */
  readonly NativeCollections: new () => NativeCollections;
  /**
   * Starts a program without a copy of this process; standard error is ours. Rejects with the
   * system's reason.
   */
  startProgram(options: NativeProgramOptions): Promise<NativeProgram>;
  /** The status of wait(2), `null` while the child runs; throws when it is no child or was reaped before. */
  reapProgram(pid: number): number | null;
  /** Empty when views can be uncounted by V8 (crates/node/src/uncounted.rs); else the reason. */
  uncountedProblem(): string;
  /** Bytes of uncounted views with keys that this thread made and that are not collected yet. */
  outstandingBytes(): number;
  /** Offsets and limits of the scoreboard, in the order of `boardAt` (serve/shared/board.ts). */
  boardLayout(): number[];
  /** The clock of the scoreboard, in ms, cut to 32 bits. */
  boardNowMs(): number;
  /** Times that a router of this process had no descriptor left for a connection, cut to 32 bits. */
  routersExhausted(): number;
  /** Sends to a Unix datagram socket; a path that begins with `@` is an abstract one. */
  sendDatagram(path: string, text: string): void;
  /** Rings an eventfd. */
  ringBell(fd: number): void;
  /** Number of connections that wait in a listening socket; 0 for any other descriptor. */
  acceptQueue(fd: number): number;
  /** Passes up to 8 descriptors over a Unix socket, all or none; they stay open here. */
  sendDescriptors(socket: number, fds: number[]): void;
  /** Byte offsets of the words of `wordAt` (channels/shm/layout.ts), in its order. */
  layoutOffsets(): number[];
  grantedCores(): GrantedCores;
  hasCpuQuota(): boolean;
  /** The cores that this thread may run on, ascending; none where the system has no list. */
  allowedCores(): number[];
  pinThread(cpus: readonly number[]): void;
  currentCpu(): number;
  /** Sets the core that a guest publishes, and the number of cores outside; before its first channel. */
  setGuestCores(core: number, coreCount: number): void;
  /** The number of this thread in the system; 0 when unknown. */
  threadId(): number;
  /**
   * Ends this process when its parent, process `pid`, ends, and when the parent's `thread` does,
   * which must be the one that started this process; 0: only with the process. Call it on the main
   * thread.
   */
  watchParent(pid: number, thread: number, graceMs: number): 'pidfd' | 'death-signal';
  probeKernel(): KernelFeatures;
}

const exportNames = [
  'NativeSegment',
  'NativeDescriptors',
  'NativeArena',
  'NativeLoop',
  'NativeBoard',
  'sendDatagram',
  'NativeFileSender',
  'startProgram',
  'reapProgram',
  'NativeAcceptor',
  'NativeRouter',
  'NativeLoopInbox',
  'NativeTracer',
  'spaceFd',
  'adoptSpace',
  'noteEnd',
  'NativeClosureReader',
  'NativeCollections',
  'NativeTransactions',
  'uncountedProblem',
  'outstandingBytes',
  'boardLayout',
  'boardNowMs',
  'routersExhausted',
  'ringBell',
  'acceptQueue',
  'sendDescriptors',
  'layoutOffsets',
  'grantedCores',
  'hasCpuQuota',
  'allowedCores',
  'pinThread',
  'currentCpu',
  'setGuestCores',
  'threadId',
  'watchParent',
  'probeKernel',
] as const satisfies readonly (keyof NativeBinding)[];

/** Checks the loaded module against `NativeBinding`; the error names the missing export. */
function parseBinding(loaded: unknown): NativeBinding {
  for (const name of exportNames) {
    const found: unknown = Reflect.get(Object(loaded), name);
    if (typeof found !== 'function') {
      throw new Error(`it exports no ${name}: it belongs to another version of manycore`);
    }
  }
  return loaded as NativeBinding;
}

type Loaded =
  | { readonly binding: NativeBinding; readonly path: string; readonly problem?: undefined }
  | { readonly binding?: undefined; readonly path?: undefined; readonly problem: CodedError };

let loaded: Loaded | undefined;

/** Stage at which loading the binary failed. */
export type NativeFailure = 'not found' | 'not loadable' | 'other version';

const buildIt = 'in a checkout with Rust "npm run build:native" makes it';

/** Returns the way out of a failure, for a binary that no setting of the user names. */
export function nativeRemedy(platform: string, failure: NativeFailure): string {
  if (!builtPlatforms.includes(platform)) {
    const build = platform.startsWith('linux-') ? `; ${buildIt}` : '';
    return `There is no binary for ${platform}, only for ${builtPlatforms.join(', ')}${build}`;
  }
  const name = `@manycore/${platform}`;
  if (failure === 'not found') {
    return `npm installs ${name} beside this package, without --omit=optional; ${buildIt}`;
  }
  if (failure === 'other version') {
    return `Install ${name} ${packageVersion()}, the version of this package; ${buildIt}`;
  }
  return `Install ${name} again: its file is damaged, or made for another system`;
}

function missing(reason: string, failure: NativeFailure, cause?: unknown): Loaded {
  const remedy =
    prototypeRemedy(cause) ??
    (process.env['MANYCORE_NATIVE']
      ? 'Unset MANYCORE_NATIVE to load the installed one'
      : nativeRemedy(platformName(), failure));
  const message =
    `the native binary does not load (${reason}): shared memory is off, other channels work. ` +
    remedy;
  return { problem: new CodedError('NATIVE_MISSING', message, { cause }) };
}

const require = createRequire(import.meta.url);
const ownBinaries = fileURLToPath(new URL('../../prebuilds/', import.meta.url));

/**
 * The path of a file that was built for this platform: in this package, when it was built here, else in the
 * package for the platform, which npm installs beside this one.
 */
function builtFile(name: string): string {
  const platform = platformName();
  const own = `${ownBinaries}${platform}/${name}`; // `join` fails where lists inherit an element
  if (existsSync(own)) return own;
  try {
    return require.resolve(`@manycore/${platform}/${name}`);
  } catch {
    return own;
  }
}

function load(): Loaded {
  if (process.env['MANYCORE_NATIVE'] === 'off') return missing('MANYCORE_NATIVE=off', 'not found');
  const override = process.env['MANYCORE_NATIVE'] ?? '';
  let failure: NativeFailure = 'not loadable';
  try {
    const path = override === '' ? builtFile('manycore.node') : override;
    if (!existsSync(path)) failure = 'not found';
    const module: unknown = require(path);
    failure = 'other version';
    return { binding: parseBinding(module), path };
  } catch (error) {
    const [reason = ''] = messageOf(error).split('\n');
    return missing(`${platformName()}: ${reason}`, failure, error);
  }
}

/** The library that counts calls in programs it is loaded into (crates/preload); it may be missing. */
export function preloadPath(): string {
  return builtFile('manycore-preload.so');
}

/** The program that starts a partition (crates/enter); it may be missing. */
export function enterPath(): string {
  return builtFile('manycore-enter');
}

/** The library with the clocks of a guest (crates/guest-clock); it may be missing. */
export function guestClockPath(): string {
  return builtFile('manycore-guest-clock.so');
}

/** The path of the binary that this thread loaded. */
export function nativePath(): string | undefined {
  loaded ??= load();
  return loaded.path;
}

/** The binary, or `undefined` when it is missing; `nativeProblem` has the reason. */
export function nativeBinding(): NativeBinding | undefined {
  loaded ??= load();
  return loaded.binding;
}

/** The reason why there is no binary: `NATIVE_MISSING` with the loader's text and the way out. */
export function nativeProblem(): CodedError | undefined {
  loaded ??= load();
  return loaded.problem;
}

/** Like `nativeBinding`, for callers that need it. Throws `nativeProblem()`. */
export function requireNative(): NativeBinding {
  loaded ??= load();
  if (loaded.problem !== undefined) throw loaded.problem;
  return loaded.binding;
}

/** Calls into the binary; an error with one of our codes becomes a `CodedError`. */
export function callNative<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error) || error instanceof CodedError) throw error;
    const code: unknown = Reflect.get(error, 'code');
    if (!isErrorCode(code)) throw error;
    throw new CodedError(code, error.message, { cause: error });
  }
}
