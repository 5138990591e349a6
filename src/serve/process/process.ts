// One process of a server, from inside: its listener thread, its loops, and the messages between them
// and the supervisor. With one loop the program runs in the main thread, as under `node`; with more,
// each loop is a thread, and the main thread can answer the supervisor whatever the program does.
// Long (over 400 lines), because all messages between loops and the supervisor pass through here.

import { closeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { acceptChannel, offerChannel, Wire } from '../../channels/index.js';
import {
  callNative,
  type NativeAcceptor,
  type NativeBoard,
  type NativeDescriptors,
  requireNative,
} from '../../native.js';
import { Loop } from '../loop/loop.js';
import {
  type FromLoop,
  type FromProcess,
  type ListenQuery,
  type LoopTicket,
  type ProcessTicket,
  parseFromLoop,
  parseToProcess,
  type ToLoop,
  type ToProcess,
  type TravelledError,
  travelled,
} from '../protocol.js';
import { boardAt, Row } from '../shared/board.js';
import { ProcessLeases } from './process-leases.js';
import { type MeshLoop, ProcessMesh } from './process-mesh.js';
import { ProcessSockets } from './process-sockets.js';
import { ProcessThreads } from './process-threads.js';
import { stackOfThread } from './stack.js';
import { startStackThread } from './stack-watch.js';

/** A loop as its process sees it. */
interface LoopEnd {
  readonly post: (message: ToLoop) => void;
  /** Lets the event loop end although messages to this loop may be pending. */
  readonly leave: () => void;
  /** Ends its thread, if one still runs. */
  readonly end: () => void;
  readonly index: number;
  /** Counted up in this process, because an index is used again. */
  readonly serial: number;
  /** Thread id of the loop's thread; `undefined` in the main thread. */
  readonly threadId: number | undefined;
  isReady: boolean;
  isDraining: boolean;
  hasEnded: boolean;
  /** True: the loop was added, and never listened. */
  hasFailed: boolean;
}

interface PendingListen {
  readonly loop: LoopEnd;
  /** The loop's own number of the request. */
  readonly request: number;
}

export class ServeProcess {
  readonly #ticket: ProcessTicket;
  readonly #entry: URL;
  readonly #board: NativeBoard;
  readonly #acceptor: NativeAcceptor;
  readonly #descriptors: NativeDescriptors;
  readonly #controlSocketFd: number;
  readonly #activeLeasesFd: number;
  /** Open until the thread that takes stacks owns it. */
  #stackFd: number | undefined;
  readonly #up: Wire<FromProcess>;
  /** Loops that have not ended. */
  readonly #loops = new Set<LoopEnd>();
  readonly #pendingListens = new Map<number, PendingListen>();
  readonly #leases: ProcessLeases<LoopEnd>;
  /** The loops, and the threads beside them. */
  readonly #members = new Set<MeshLoop>();
  readonly #mesh: ProcessMesh<MeshLoop>;
  readonly #threads: ProcessThreads<LoopEnd>;
  readonly #sockets: ProcessSockets<LoopEnd>;
  #requests = 0;
  #startedLoops = 0;
  /** The last change of size, which may have to wait for the end of a loop. */
  #wanted: { readonly count: number; readonly deadlineMs: number } | undefined;
  #isDraining = false;
  /** True: all initial loops listen, or did. */
  #hasServed = false;

  /** `entry` is the program of loops in threads. Throws `NATIVE_MISSING`. */
  constructor(ticket: ProcessTicket, entry: URL) {
    const native = requireNative();
    this.#ticket = ticket;
    this.#entry = entry;
    this.#board = callNative(() => native.NativeBoard.open(ticket.boardFd));
    this.#descriptors = new native.NativeDescriptors();
    const { process: number, bellFds, placement, overloadMs } = ticket;
    this.#acceptor = callNative(
      () => new native.NativeAcceptor(this.#board, number, bellFds, placement, overloadMs),
    );
    // Duplicates that child programs do not inherit.
    this.#controlSocketFd = this.#descriptors.duplicate(ticket.controlSocketFd);
    closeSync(ticket.controlSocketFd);
    this.#sockets = new ProcessSockets(this.#acceptor, this.#descriptors, this.#controlSocketFd);
    this.#activeLeasesFd = this.#descriptors.duplicate(ticket.activeLeasesFd);
    closeSync(ticket.activeLeasesFd);
    if (ticket.stackFd !== undefined) {
      this.#stackFd = this.#descriptors.duplicate(ticket.stackFd);
      closeSync(ticket.stackFd);
    }
    this.#up = new Wire(acceptChannel(ticket.channel).channel, {
      onMessage: (message) => this.#receive(parseToProcess(message)),
      onClose: () => this.#orphaned(),
    });
    const postUp = (message: FromProcess): void => this.#up.post(message);
    this.#leases = new ProcessLeases(this.#controlSocketFd, postUp);
    this.#mesh = new ProcessMesh(this.#descriptors, this.#controlSocketFd, this.#members, postUp);
    this.#threads = this.#makeThreads(postUp);
    // Service managers signal every process of a service; a terminal signals a group, which is not ours.
    process.on('SIGTERM', () => this.#drain(this.#ticket.drainTimeoutMs));
    for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
    // Ends a blocked main thread after the supervisor's end. Only with pidfds, or it would end at once.
    if (native.probeKernel().pidfd === '') {
      native.watchParent(ticket.parentPid, 0, ticket.drainTimeoutMs + 2 * exitGraceMs);
    }
  }

  /** Drains and exits: without a supervisor there is no reload and no replacement. */
  #orphaned(): void {
    for (const loop of this.#loops) loop.post({ type: 'orphaned' });
    this.#leases.watch();
    this.#drain(this.#ticket.drainTimeoutMs);
  }

  #makeThreads(postUp: (message: FromProcess) => void): ProcessThreads<LoopEnd> {
    return new ProcessThreads({
      args: this.#ticket.app.args,
      nextSerial: () => this.#nextSerial(),
      onStart: (member) => this.#members.add(member),
      onMember: (member, message) => this.#mesh.forwardUp(member, message),
      onEnd: (member) => {
        this.#members.delete(member);
        postUp({ type: 'loopEnded', loop: member.serial });
      },
    });
  }

  #nextSerial(): number {
    this.#startedLoops += 1;
    return this.#startedLoops;
  }

  start(): void {
    const { min, max } = this.#ticket.loops;
    if (max === 1) this.#startHere();
    else for (let index = 0; index < min; index += 1) this.#startThread(index);
  }

  #resize(count: number, deadlineMs: number): void {
    this.#wanted = { count, deadlineMs };
    const staying = [...this.#loops].filter(({ isDraining }) => !isDraining);
    for (const loop of staying.slice(count)) drainLoop(loop, deadlineMs);
    const used = new Set([...this.#loops].map(({ index }) => index));
    const free = Array.from({ length: this.#ticket.loops.max }, (_, index) => index);
    const missing = Math.max(0, count - staying.length);
    for (const index of free.filter((index) => !used.has(index)).slice(0, missing)) {
      try {
        this.#endIfLate(this.#startThread(index));
      } catch (error) {
        this.#up.post({ type: 'loopFailed', index, error: travelled(error) }); // no thread, no memory
      }
    }
  }

  #startHere(): void {
    const loop = new Loop({
      ...this.#loopOptions(0),
      post: (message) => this.#receiveFromLoop(end, message),
      onDrained: () => {},
    });
    const end: LoopEnd = {
      // Deferred, as in a thread: the loop may be in the middle of a message of its own.
      post: (message) => queueMicrotask(() => loop.receive(message)),
      leave: () => {},
      end: () => {},
      index: 0,
      serial: 0,
      threadId: undefined,
      isReady: false,
      isDraining: false,
      hasEnded: false,
      hasFailed: false,
    };
    this.#add(end);
    void loop.start();
  }

  #loopOptions(index: number) {
    const { process: number, app } = this.#ticket;
    const { key: acceptorKey } = this.#acceptor;
    return { process: number, index, acceptorKey, activeLeasesFd: this.#activeLeasesFd, app };
  }

  #startThread(index: number): LoopEnd {
    const offer = offerChannel('memory', { worker: 'thread', spin: false });
    const ticket: LoopTicket = { kind: 'loop', ...this.#loopOptions(index), channel: offer.ticket };
    const worker = new Worker(this.#entry, {
      workerData: ticket,
      transferList: [...offer.transfer],
      argv: [...this.#ticket.app.args],
    });
    const wire = new Wire<ToLoop>(offer.open(undefined).channel, {
      onMessage: (message) => this.#receiveFromLoop(end, parseFromLoop(message)),
    });
    const end: LoopEnd = {
      post: (message) => wire.post(message),
      leave: () => wire.unref(),
      end: () => void worker.terminate(),
      index,
      serial: this.#nextSerial(),
      threadId: worker.threadId,
      isReady: false,
      isDraining: false,
      hasEnded: false,
      hasFailed: false,
    };
    this.#add(end);
    let error: unknown;
    worker.once('error', (thrown) => {
      error = thrown;
    });
    worker.once('exit', () => this.#threadEnded(end, error));
    return end;
  }

  #add(loop: LoopEnd): void {
    this.#loops.add(loop);
    this.#members.add(loop);
  }

  #receiveFromLoop(loop: LoopEnd, message: FromLoop): void {
    switch (message.type) {
      case 'listen':
        this.#requestListen(loop, message.request, message.query);
        break;
      case 'ready':
        loop.isReady = true;
        this.#startStackThread();
        this.#serveIfReady();
        break;
      case 'failed':
        this.#failed(loop, message.error);
        break;
      case 'drained':
        loop.leave();
        this.#ended(loop);
        // Work that the program still has in its event loop would keep the thread alive.
        setTimeout(() => loop.end(), exitGraceMs).unref();
        break;
      case 'acquire':
        this.#leases.acquire(this.#loops.has(loop) ? loop : undefined, message);
        break;
      case 'release':
        this.#leases.release(loop, message.request);
        break;
      case 'join':
      case 'offer':
        this.#mesh.forwardUp(loop, message);
        break;
      case 'startThread':
      case 'endThread':
        this.#threads.receive(loop, message);
        break;
      case 'unlisten':
        this.#sockets.forget(loop, message.number);
        this.#dropUnused();
        break;
    }
  }

  /**
   * Accepts connections once all initial loops listen: a loop that fails before ends the process, and with it
   * every connection of the others. A loop that is added later serves as soon as it listens.
   */
  #serveIfReady(): void {
    const isReady = [...this.#loops].every((loop) => loop.isReady);
    if (!this.#hasServed && !isReady) return;
    const begins = [...this.#loops].filter((loop) => loop.isReady && !loop.isDraining);
    for (const { index } of begins) this.#rowOf(index).state = 'ready';
    this.#acceptor.wake();
    if (this.#hasServed) return;
    this.#hasServed = true;
    this.#up.post({ type: 'ready' });
  }

  #rowOf(index: number): Row {
    return new Row(this.#board.buffer(), this.#ticket.process, index);
  }

  /** Reports a failed loop: a loop that was added ends alone, and the others serve on. */
  #failed(loop: LoopEnd, error: TravelledError): void {
    if (this.#hasServed && !loop.isReady) {
      loop.hasFailed = true;
      loop.end();
      this.#up.post({ type: 'loopFailed', index: loop.index, error });
      return;
    }
    this.#up.post({ type: 'failed', error });
    this.#drain(this.#ticket.drainTimeoutMs);
  }

  /** Ends an added loop that does not listen in time; for initial loops the supervisor ends the process. */
  #endIfLate(loop: LoopEnd): void {
    const { startTimeoutMs } = this.#ticket;
    setTimeout(() => {
      if (loop.isReady || loop.isDraining || loop.hasFailed || !this.#loops.has(loop)) return;
      this.#failed(loop, travelled(new Error(`it has not listened within ${startTimeoutMs} ms`)));
    }, startTimeoutMs).unref();
  }

  #requestListen(loop: LoopEnd, request: number, query: ListenQuery): void {
    this.#requests += 1;
    this.#pendingListens.set(this.#requests, { loop, request });
    this.#up.post({ type: 'listen', request: this.#requests, query });
  }

  #receive(message: ToProcess): void {
    switch (message.type) {
      case 'answer':
        this.#answer(message);
        break;
      case 'drain':
        this.#drain(message.deadlineMs);
        break;
      case 'resize':
        if (!this.#isDraining) this.#resize(message.loops, message.deadlineMs);
        break;
      case 'adopt':
        if (!this.#isDraining) this.#takeDescriptors(() => this.#sockets.adopt(message.number));
        break;
      case 'takeStack':
        void this.#postStack(message.index);
        break;
      case 'granted':
      case 'leaseEnded':
        this.#leases.receive(message);
        break;
      case 'members':
      case 'offered':
      case 'unreachable':
      case 'left':
        this.#takeDescriptors(() => this.#mesh.forwardDown(message));
        break;
    }
  }

  #answer(message: Extract<ToProcess, { type: 'answer' }>): void {
    const pending = this.#pendingListens.get(message.request);
    this.#pendingListens.delete(message.request);
    if ('number' in message.answer) {
      const { number } = message.answer;
      const isThere = pending !== undefined && this.#loops.has(pending.loop);
      this.#takeDescriptors(() => this.#sockets.take(number, isThere ? pending.loop : undefined));
    }
    pending?.loop.post({ ...message, request: pending.request });
    this.#dropUnused();
  }

  /** Drains the process when it has no descriptor left; the supervisor replaces it. */
  #takeDescriptors(take: () => void): void {
    try {
      take();
    } catch (error) {
      this.#up.post({ type: 'failed', error: travelled(error) });
      this.#drain(this.#ticket.drainTimeoutMs);
    }
  }

  /** Starts the stack thread once the program is ready, so that it does not delay the start. */
  #startStackThread(): void {
    if (this.#stackFd === undefined) return;
    startStackThread(this.#descriptors.release(this.#stackFd));
    this.#stackFd = undefined;
  }

  /** Sends the stack of a loop in a thread. */
  async #postStack(index: number): Promise<void> {
    const threadId = [...this.#loops].find((loop) => loop.index === index)?.threadId;
    if (threadId === undefined) return;
    this.#up.post({ type: 'stack', index, stack: await stackOfThread(threadId) });
  }

  /** Drops unused sockets, unless a pending answer may be for one of them. */
  #dropUnused(): void {
    if (this.#pendingListens.size > 0) return;
    for (const number of this.#sockets.dropUnused()) this.#up.post({ type: 'unlisten', number });
  }

  #drain(deadlineMs: number): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#sockets.leave();
    this.#up.post({ type: 'leaving' });
    for (const loop of this.#loops) drainLoop(loop, deadlineMs);
    // Also when a loop is in an endless callback, and no supervisor is left to kill this process.
    setTimeout(() => process.exit(1), deadlineMs + exitGraceMs).unref();
  }

  /** After an unrequested end the supervisor replaces this process, whose other loops drain. */
  #threadEnded(loop: LoopEnd, error: unknown): void {
    const row = this.#rowOf(loop.index);
    const placed = row.get(boardAt.placed);
    row.clear();
    row.set(boardAt.placed, placed); // the supervisor reads whether this process has served
    this.#loops.delete(loop);
    this.#members.delete(loop);
    this.#threads.loopEnded(loop);
    this.#sockets.forget(loop);
    this.#dropUnused();
    this.#leases.forget(loop);
    this.#up.post({ type: 'loopEnded', loop: loop.serial });
    if (loop.isDraining) {
      const { count, deadlineMs } = this.#wanted ?? {};
      if (!this.#isDraining && count !== undefined) this.#resize(count, deadlineMs ?? 0);
    } else if (!loop.hasEnded && !loop.hasFailed) {
      const thrown =
        error ?? new Error(`loop ${loop.index} has ended: the program called process.exit()`);
      this.#failed(loop, travelled(thrown));
    }
    this.#ended(loop);
  }

  #ended(loop: LoopEnd): void {
    if (loop.hasEnded) return;
    loop.hasEnded = true;
    if (![...this.#loops].every(({ hasEnded }) => hasEnded)) return;
    this.#acceptor.close();
    this.#up.post({ type: 'drained' });
    this.#up.unref(); // the program's exit handlers may still need workers
    // Ends what the program still has in its event loop (timers, database clients).
    setTimeout(() => process.exit(), exitGraceMs).unref();
  }
}

function drainLoop(loop: LoopEnd, deadlineMs: number): void {
  loop.isDraining = true;
  loop.post({ type: 'drain', deadlineMs });
}

/** Time for the program's exit handlers, in ms. */
const exitGraceMs = 5000;
