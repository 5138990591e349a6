// The scoreboard as JavaScript sees it: one row for each event loop of the server, in memory that the
// supervisor and all processes share; without the native core, in memory of each (portable/rows.ts).
// crates/core/src/accept/board.rs defines the writer of each word and has the same numbers;
// test/native/board.test.ts compares the two.

/** Byte offsets: of the header's end, of one row to the next, and of words in a row. */
export const boardAt = {
  headerBytes: 128,
  rowBytes: 256,
  open: 0,
  untaken: 4,
  untakenSince: 8,
  placed: 12,
  pingedSince: 16,
  idleMs: 20,
  turnedAway: 24,
  idleWrittenAt: 28,
  direct: 32,
  takenAway: 40,
  takenOver: 44,
  filesSent: 48,
  filesOpen: 52,
  filesKib: 56,
  exhausted: 60,
  state: 128,
  listens: 132,
  limit: 136,
  inFlight: 140,
  requests: 144,
  kibWritten: 148,
  speaksHttp: 152,
  lagMs: 156,
} as const;

/** Listening sockets of a server: a row has one bit for each. */
export const maxSockets = 32;

/** Bytes 8 and 12 of the header. */
const processesAt = 8;
const loopsAt = 12;
const wordBytes = 4;

/** States of a loop, by their number in the row. */
export const loopStates: readonly LoopState[] = ['free', 'starting', 'ready', 'draining'];
export type LoopState = 'free' | 'starting' | 'ready' | 'draining';

/** The words of one row. Another thread may write any of them at any moment. */
export class Row {
  /** Row number across all processes. */
  readonly number: number;
  readonly #board: ArrayBufferLike;
  readonly #words: Uint32Array<ArrayBufferLike>;

  constructor(board: ArrayBufferLike, process: number, index: number) {
    this.#board = board;
    const header = new Uint32Array(board, 0, boardAt.headerBytes / wordBytes);
    const loops = header[loopsAt / wordBytes] ?? 0;
    this.number = process * loops + index;
    const at = boardAt.headerBytes + this.number * boardAt.rowBytes;
    this.#words = new Uint32Array(board, at, boardAt.rowBytes / wordBytes);
  }

  get(offset: number): number {
    return Atomics.load(this.#words, offset / wordBytes);
  }

  set(offset: number, value: number): void {
    Atomics.store(this.#words, offset / wordBytes, value);
  }

  add(offset: number, change: number): void {
    Atomics.add(this.#words, offset / wordBytes, change);
  }

  /** Adds to a word that this loop alone writes, without the cost of an atomic step. */
  addOwn(offset: number, change: number): void {
    const at = offset / wordBytes;
    this.#words[at] = (this.#words[at] ?? 0) + change;
  }

  or(offset: number, bits: number): void {
    Atomics.or(this.#words, offset / wordBytes, bits);
  }

  get state(): LoopState {
    return loopStates[this.get(boardAt.state)] ?? 'free';
  }

  /** State of the loop with this row number; `free` if there is none. */
  stateOf(number: number): LoopState {
    const at = boardAt.headerBytes + number * boardAt.rowBytes + boardAt.state;
    if (at >= this.#board.byteLength) return 'free';
    return loopStates[Atomics.load(new Uint32Array(this.#board, at, 1), 0)] ?? 'free';
  }

  set state(state: LoopState) {
    this.set(boardAt.state, loopStates.indexOf(state));
  }

  /** Resets the row, but for the words at `kept`. For the supervisor, while no loop uses it. */
  clear(kept: readonly number[] = []): void {
    for (let at = 0; at < this.#words.length; at += 1) {
      if (!kept.includes(at * wordBytes)) Atomics.store(this.#words, at, 0);
    }
  }
}

/** All rows: `[process][loop]`. */
export function rowsOf(board: ArrayBufferLike): Row[][] {
  const header = new Uint32Array(board, 0, boardAt.headerBytes / wordBytes);
  const count = (at: number) => header[at / wordBytes] ?? 0;
  return Array.from({ length: count(processesAt) }, (_, process) =>
    Array.from({ length: count(loopsAt) }, (_, index) => new Row(board, process, index)),
  );
}

/** Makes an empty scoreboard that threads of one process share. */
export function createBoard(processes: number, loops: number): SharedArrayBuffer {
  const { headerBytes, rowBytes } = boardAt;
  const board = new SharedArrayBuffer(headerBytes + processes * loops * rowBytes);
  const header = new Uint32Array(board, 0, headerBytes / wordBytes);
  header[processesAt / wordBytes] = processes;
  header[loopsAt / wordBytes] = loops;
  return board;
}
