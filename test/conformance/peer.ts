// The other side of the conformance suite: a process or a thread that does what frames tell it.
// Also the names of what it can be told, for the suite.

import { closeSync, fstatSync, openSync, readdirSync, readSync, writeSync } from 'node:fs';
import { isMainThread, MessagePort, parentPort, workerData } from 'node:worker_threads';
import { acceptChannel, type ByteReader, type ByteWriter } from '../../src/channels/index.js';

/** Kinds of frames that are commands. */
export const ask = {
  /** Comes back with kind `echoed`, all else the same. */
  echo: 1,
  /** Send `task` frames of `target` bytes, kind `flooded`, task counting from 0. */
  flood: 2,
  /** Close. */
  close: 3,
  /** Throw from the listener. */
  fail: 4,
  /** Block the thread until the gate opens. */
  stall: 5,
  /** Answer `counted`: frames of kind `plain` so far, and errors that surfaced. */
  count: 6,
  /** Write bytes that are no frame. */
  corrupt: 7,
  /** Let the event loop end. */
  unref: 8,
  /** Nothing: it is counted. */
  plain: 9,
  /** Have the title `titleWhenOut` once all that was sent has left the process. */
  nameWhenOut: 10,
} as const;

/** A title of the process, which its parent reads without a turn of an event loop. */
export const titleWhenOut = 'all is out';

/** Kinds of frames that are answers. */
export const answer = { echoed: 101, flooded: 102, counted: 103 } as const;

/** How a thread worker gets what it needs; a process gets its ticket as an argument. */
export interface PeerData {
  readonly ticket: unknown;
  /** The gate of `stall`: it is open when the first int32 is not 0. */
  readonly gate: SharedArrayBuffer;
  readonly startsUnref: boolean;
}

export function writeBytes(writer: ByteWriter, bytes: Uint8Array): boolean {
  writer.raw(bytes);
  return true;
}

function isPeerData(value: unknown): value is PeerData {
  return typeof value === 'object' && value !== null && 'gate' in value;
}

/** Waits, with the whole thread: for a byte on stdin (process), for the gate (thread). */
function waitAtGate(): void {
  if (isMainThread) readSync(0, Buffer.alloc(1));
  else if (isPeerData(workerData)) Atomics.wait(new Int32Array(workerData.gate), 0, 0);
}

/** Where a segment says how far the replies go (docs/design/shared-memory.md), in bytes. */
const replyTailAt = 384;

/** What writes bytes that are no frame, made before the channel takes over what the ticket names. */
function garbageWriter(ticket: unknown): () => void {
  const garbage = Buffer.alloc(64, 0xfd);
  if (typeof ticket !== 'object' || ticket === null) return () => {};
  const port: unknown = 'port' in ticket ? ticket.port : undefined;
  if (port instanceof MessagePort) return () => port.postMessage('no frame');
  if ('segment' in ticket) {
    const segment = openSync(`/proc/self/fd/${ticket.segment}`, 'r+');
    process.on('exit', () => closeSync(segment));
    return () => writeSync(segment, garbage, 0, 4, replyTailAt);
  }
  return () => {
    for (const fd of socketsOfProcess()) writeSync(fd, garbage);
  };
}

/** All of the process: one is the channel's, wherever it has put its descriptor. */
function socketsOfProcess(): number[] {
  return readdirSync('/dev/fd')
    .map(Number)
    .filter((fd) => {
      try {
        return fstatSync(fd).isSocket();
      } catch {
        return false; // the folder itself
      }
    });
}

/** When the parent closes, it sends `counted` once more and closes too. */
function runPeer(ticket: unknown, startsUnref: boolean): void {
  const writeGarbage = garbageWriter(ticket);
  const { channel } = acceptChannel(ticket);
  let plainFrames = 0;
  let surfacedErrors = 0;
  process.on('uncaughtException', () => {
    surfacedErrors += 1;
  });
  /** What did not go out yet, first to last. */
  const waiting: (() => boolean)[] = [];
  const sendWaiting = (): void => {
    for (let next = waiting[0]; next?.(); next = waiting[0]) waiting.shift();
  };
  const send = (kind: number, task: number, target: number, bytes: Uint8Array): void => {
    waiting.push(() => channel.trySend(kind, task, target, writeBytes, bytes) !== 'full');
    if (waiting.length === 1) sendWaiting();
  };
  const flood = (count: number, sizeBytes: number): void => {
    let sent = 0;
    const body = Buffer.alloc(sizeBytes, 7);
    waiting.push(() => {
      while (sent < count) {
        if (channel.trySend(answer.flooded, sent, sizeBytes, writeBytes, body) === 'full') {
          return false;
        }
        sent += 1;
      }
      return true;
    });
    sendWaiting();
  };
  const count = (): void => send(answer.counted, plainFrames, surfacedErrors, Buffer.alloc(0));
  const acts: Record<number, (task: number, target: number, body: ByteReader) => void> = {
    [ask.echo]: (task, target, body) => {
      send(answer.echoed, task, target, body.copy(body.limit - body.position));
    },
    [ask.flood]: flood,
    [ask.close]: () => channel.close(),
    [ask.fail]: () => {
      throw new Error('asked to');
    },
    [ask.stall]: waitAtGate,
    [ask.count]: count,
    [ask.corrupt]: writeGarbage,
    [ask.unref]: () => channel.unref(),
    [ask.plain]: () => {
      plainFrames += 1;
    },
    // Channels gather what one turn sends.
    [ask.nameWhenOut]: () => {
      setImmediate(() =>
        setImmediate(() => {
          process.title = titleWhenOut;
        }),
      );
    },
  };
  channel.handle({
    onFrame: (kind, task, target, body) => acts[kind]?.(task, target, body),
    onDrain: sendWaiting,
    onClose: (error) => {
      if (error !== undefined) return;
      count();
      channel.close();
    },
  });
  if (!startsUnref) channel.ref();
}

const [, , ticketArgument, startsUnref] = process.argv;
if (!isMainThread && parentPort !== null && isPeerData(workerData)) {
  runPeer(workerData.ticket, workerData.startsUnref);
} else if (ticketArgument?.startsWith('{')) {
  runPeer(JSON.parse(ticketArgument), startsUnref === 'unref');
}
