// One process of a server, from inside: its loops, and the way between them and the supervisor. With one loop the
// program runs in the main thread, as under `node`; with more, each loop is a thread, and the main thread can
// answer the supervisor whatever the program does. Requests of a loop (listen, leases, mesh) go to the supervisor
// and answers come back unread: `#forwardUp`, `#forwardDown`. The process handles only its own state: which loops
// serve, threads, drains, the sockets of its listener thread, stacks.
// Long (over 400 lines), because each message of a loop, and its end, may change that one state.

import { closeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { offerChannel } from '../../channels/index.js';
import { hasCode } from '../../errors.js';
import { RestartPolicy } from '../../lib/index.js';
import { Loop } from '../loop/loop.js';
import {
  type ArrivedEnvelope,
  type Envelope,
  type FromProcess,
  parseForProcess,
  parseToProcess,
  returned,
  type ToLoop,
  type TravelledError,
  travelled,
} from '../protocol.js';
import { boardAt, Row } from '../shared/board.js';
import { closeFds, privateFd } from '../shared/dup-fds.js';
import { type Link, localLink, threadPort, WireLink } from '../shared/link.js';
import type { LoopTicket, ProcessTicket } from '../tickets.js';
import { markOutput, markStack } from './mark-output.js';
import { ProcessThreads } from './process-threads.js';
import { stackOfThread } from './stack.js';
import { startStackThread } from './stack-watch.js';
import { openSystem, type ProcessSystem } from './system.js';

/** A loop as its process sees it. */
interface LoopEnd {
  readonly link: Link<ToLoop>;
  /** Lets the event loop end although messages to this loop may be pending. */
  readonly leave: () => void;
  /** Ends its thread, if one still runs. */
  readonly end: () => void;
  readonly index: number;
  /** Number of the loop in messages: counted up in this process, because an index is used again. */
  readonly serial: number;
  /** Thread id of the loop's thread; `undefined` in the main thread. */
  readonly threadId: number | undefined;
  /** True: its program listens. */
  isPrepared: boolean;
  /** True: it takes connections. */
  isReady: boolean;
  isDraining: boolean;
  /** True: it takes no new connection any more. */
  hasLeft: boolean;
  hasEnded: boolean;
  /** True: the loop was added, and never listened. */
  hasFailed: boolean;
}

export class ServeProcess {
  readonly #ticket: ProcessTicket;
  readonly #entry: URL;
  readonly #system: ProcessSystem;
  /** Open until the thread that takes stacks owns it. */
  #stackFd: number | undefined;
  /** Loops that have not ended. */
  readonly #loops = new Set<LoopEnd>();
  /** Links to the loops and to the threads beside them, by their numbers in messages. */
  readonly #links = new Map<number, Link>();
  readonly #threads: ProcessThreads<LoopEnd>;
  /** Numbers of the sockets that the listener thread accepts from. */
  readonly #sockets = new Set<number>();
  #lastSerial = 0;
  /** The last change of size, which may have to wait for the end of a loop. */
  #wanted: { readonly count: number; readonly deadlineMs: number } | undefined;
  #isDraining = false;
  /** Failures in a row of loops that ended before they were ready again, by the loop's index. */
  readonly #restarts = new Map<number, RestartPolicy>();
  #hasLeft = false;
  /** True: all initial loops listen, or did. */
  #hasServed = false;

  /** `entry` is the program of loops in threads. Throws `NATIVE_MISSING`. */
  constructor(ticket: ProcessTicket, entry: URL) {
    this.#ticket = ticket;
    this.#entry = entry;
    this.#system = openSystem(ticket, {
      onEnvelope: (envelope) => this.#receive(envelope),
      onError: (error) => this.#refused(error),
      onClose: () => this.#orphaned(),
    });
    const { stackFd } = ticket;
    if (stackFd !== undefined) {
      this.#stackFd = ticket.system.kind === 'native' ? privateFd(stackFd) : stackFd;
    }
    this.#threads = new ProcessThreads({
      args: ticket.app.args,
      onStart: (link) => this.#addLink(link),
      onEnvelope: (serial, envelope) => this.#forwardUp(serial, envelope),
      onEnd: (serial) => this.#dropLink(serial),
    });
    // Service managers signal every process of a service; a terminal signals a group, which is not ours.
    process.on('SIGTERM', () => this.#drain(false));
    for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  }

  /** Drains and exits: without a supervisor there is no reload and no replacement. */
  #orphaned(): void {
    for (const { link } of this.#loops) link.post({ body: { type: 'orphaned' } });
    this.#drain(false);
  }

  /** Returns the number of a loop, or of a thread beside one, in messages. */
  #addLink(link: Link): number {
    this.#lastSerial += 1;
    this.#links.set(this.#lastSerial, link);
    return this.#lastSerial;
  }

  #dropLink(serial: number): void {
    this.#links.delete(serial);
    this.#post({ type: 'loopEnded', ended: serial });
  }

  /** Forwards a message of a loop to the supervisor; it comes back when that is impossible. */
  #forwardUp(loop: number, envelope: ArrivedEnvelope): void {
    const link = this.#links.get(loop);
    try {
      if (link === undefined) closeFds(envelope.fds);
      else this.#system.up.post({ ...envelope, loop });
    } catch (error) {
      link?.post({ id: envelope.id, body: returned(envelope, error) });
    }
  }

  /** Forwards a message of the supervisor to its loop, if that has not ended. */
  #forwardDown(loop: number, envelope: ArrivedEnvelope): void {
    const link = this.#links.get(loop);
    if (link !== undefined) link.post(envelope);
    else {
      closeFds(envelope.fds);
      envelope.handle?.close();
    }
  }

  #post(body: FromProcess): void {
    this.#system.up.post({ body });
  }

  start(): void {
    const { min, max } = this.#ticket.loops;
    if (max === 1) this.#startHere();
    else for (let index = 0; index < min; index += 1) this.#startThread(index);
  }

  #resize(count: number, deadlineMs: number): void {
    this.#wanted = { count, deadlineMs };
    const staying = [...this.#loops].filter(({ isDraining }) => !isDraining);
    for (const loop of staying.slice(count)) drainLoop(loop, deadlineMs, true);
    const used = new Set([...this.#loops].map(({ index }) => index));
    const free = Array.from({ length: this.#ticket.loops.max }, (_, index) => index);
    const missing = Math.max(0, count - staying.length);
    for (const index of free.filter((index) => !used.has(index)).slice(0, missing)) {
      try {
        this.#endIfLate(this.#startThread(index));
      } catch (error) {
        this.#post({ type: 'loopFailed', index, error: travelled(error) }); // no thread, no memory
      }
    }
  }

  #startHere(): void {
    const loop = new Loop({
      ...this.#loopOptions(0),
      up: {
        post: ({ id = 0, fds = [], body }) => this.#receiveFromLoop(end, { id, fds, body }),
        poll: () => {
          const isPossible = this.#system.up.poll?.() === true;
          if (isPossible) link.deliver();
          return isPossible;
        },
      },
      onFirstClient: this.#system.loopsListen ? () => this.#system.wake() : undefined,
      onDrained: () => {},
    });
    // Later, as in a thread: the loop may be in the middle of a message of its own.
    const link = localLink<ToLoop>(loop.receive);
    const end = this.#add({ link, leave: () => {}, end: () => {}, index: 0, threadId: undefined });
    process.on('uncaughtException', this.#startFailed);
    void loop.start();
  }

  /**
   * Reports what the program throws before it listens, as the end of a thread does, instead of Node's text. Not
   * where the program handles such errors.
   */
  readonly #startFailed = (error: unknown): void => {
    const [loop] = this.#loops;
    if (process.listenerCount('uncaughtException') > 1 || loop === undefined) return;
    this.#failed(loop, travelled(error));
  };

  #loopOptions(index: number) {
    const { process: number, place, app } = this.#ticket;
    return { process: number, place, index, system: this.#system.ofLoops, app };
  }

  #startThread(index: number): LoopEnd {
    const offer = offerChannel('memory', { worker: 'thread', spin: false });
    const ticket: LoopTicket = { kind: 'loop', ...this.#loopOptions(index), channel: offer.ticket };
    const { marksOutput, app } = this.#ticket;
    const worker = new Worker(this.#entry, {
      workerData: ticket,
      transferList: [...offer.transfer],
      argv: [...app.args],
      ...(marksOutput && { stdout: true, stderr: true }),
    });
    if (marksOutput) markOutput(worker, index);
    const link = new WireLink<ToLoop>(offer.open(undefined).channel, threadPort, {
      onEnvelope: (envelope) => this.#receiveFromLoop(end, envelope),
    });
    const end = this.#add({
      link: { post: (envelope: Envelope<ToLoop>) => link.post(this.#system.forThread(envelope)) },
      leave: () => link.unref(),
      end: () => void worker.terminate(),
      index,
      threadId: worker.threadId,
    });
    let error: unknown;
    worker.once('error', (thrown) => {
      error = thrown;
    });
    worker.once('exit', () => this.#threadEnded(end, error));
    return end;
  }

  #add(parts: Pick<LoopEnd, 'link' | 'leave' | 'end' | 'index' | 'threadId'>): LoopEnd {
    const flags = { isPrepared: false, isReady: false, isDraining: false, hasLeft: false };
    const ends = { hasEnded: false, hasFailed: false };
    const loop = { ...parts, serial: this.#addLink(parts.link), ...flags, ...ends };
    this.#loops.add(loop);
    return loop;
  }

  #receiveFromLoop(loop: LoopEnd, envelope: ArrivedEnvelope): void {
    const message = parseForProcess(envelope);
    switch (message?.type) {
      case undefined:
        this.#forwardUp(loop.serial, envelope);
        break;
      case 'ready':
        loop.isPrepared = true;
        if (this.#system.loopsListen) this.#beginIfPrepared();
        else this.#serves(loop);
        break;
      case 'serving':
        this.#serves(loop);
        break;
      case 'failed':
        this.#failed(loop, message.error);
        break;
      case 'left':
        loop.hasLeft = true;
        this.#leaveIfAllHave();
        break;
      case 'drained':
        loop.leave();
        this.#ended(loop);
        // Work that the program still has in its event loop would keep the thread alive.
        setTimeout(() => loop.end(), exitGraceMs).unref();
        break;
      case 'changeFolder':
        loop.link.post({ id: message.id, body: changeFolder(message.folder) });
        break;
      case 'startThread':
      case 'endThread':
        this.#threads.receive(loop, message);
        break;
    }
  }

  /** Makes loops that listen themselves take connections, once all initial ones are prepared. */
  #beginIfPrepared(): void {
    const waiting = [...this.#loops].filter(({ isReady }) => !isReady);
    if (!this.#hasServed && !waiting.every(({ isPrepared }) => isPrepared)) return;
    for (const { isPrepared, link } of waiting) {
      if (isPrepared) link.post({ body: { type: 'serve' } });
    }
  }

  #serves(loop: LoopEnd): void {
    loop.isReady = true;
    this.#restarts.get(loop.index)?.succeeded();
    process.off('uncaughtException', this.#startFailed);
    this.#startStackThread();
    this.#serveIfReady();
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
    this.#system.wake();
    if (this.#hasServed) return;
    this.#hasServed = true;
    this.#post({ type: 'ready' });
  }

  #rowOf(index: number): Row {
    return new Row(this.#system.board, this.#ticket.process, index);
  }

  /** Prints what ended a loop among its lines, where the supervisor reads those. */
  #print({ index }: LoopEnd, { stack }: TravelledError): void {
    if (this.#ticket.marksOutput && stack !== undefined) markStack(stack, index);
  }

  /** Reports a failed loop: a loop that was added ends alone, and the others serve on. */
  #failed(loop: LoopEnd, error: TravelledError): void {
    this.#print(loop, error);
    if (this.#hasServed && !loop.isReady && !this.#ticket.restartsLoops) {
      loop.hasFailed = true;
      loop.end();
      this.#post({ type: 'loopFailed', index: loop.index, error });
      return;
    }
    this.#system.wake(); // the supervisor reads whether it has served
    this.#post({ type: 'failed', error });
    this.#drain(true);
  }

  /** Ends an added loop that does not listen in time; for initial loops the supervisor ends the process. */
  #endIfLate(loop: LoopEnd): void {
    const { startTimeoutMs } = this.#ticket;
    setTimeout(() => {
      if (loop.isReady || loop.isDraining || loop.hasFailed || !this.#loops.has(loop)) return;
      this.#failed(loop, travelled(new Error(`it has not listened within ${startTimeoutMs} ms`)));
    }, startTimeoutMs).unref();
  }

  #receive(envelope: ArrivedEnvelope): void {
    if (envelope.loop !== undefined) {
      this.#forwardDown(envelope.loop, envelope);
      return;
    }
    const message = parseToProcess(envelope);
    switch (message.type) {
      case 'drain':
        this.#drain(message.isReplaced, message.deadlineMs);
        break;
      case 'resize':
        if (!this.#isDraining) this.#resize(message.loops, message.deadlineMs);
        break;
      case 'adopt':
        this.#adopt(message.number, message.fds);
        break;
      case 'drop':
        this.#sockets.delete(message.number);
        this.#system.removeSocket(message.number);
        break;
      case 'takeStack':
        void this.#postStack(message.index);
        break;
    }
  }

  #adopt(number: number, [fd = -1]: readonly number[]): void {
    if (this.#isDraining) {
      closeSync(fd);
      return;
    }
    this.#system.addSocket(number, fd);
    this.#sockets.add(number);
  }

  /** Drains the process when it has no descriptor left; the supervisor replaces it. */
  #refused(error: unknown): void {
    if (!hasCode(error, 'NATIVE_REFUSED')) throw error;
    this.#post({ type: 'failed', error: travelled(error) });
    this.#drain(true);
  }

  /** Starts the stack thread once the program is ready, so that it does not delay the start. */
  #startStackThread(): void {
    if (this.#stackFd === undefined) return;
    startStackThread(this.#stackFd);
    this.#stackFd = undefined;
  }

  /** Sends the stack of a loop in a thread. */
  async #postStack(index: number): Promise<void> {
    const threadId = [...this.#loops].find((loop) => loop.index === index)?.threadId;
    if (threadId === undefined) return;
    this.#post({ type: 'stack', index, stack: await stackOfThread(threadId) });
  }

  /** `isReplaced`: others serve in its place; a second call may take that back. */
  #drain(isReplaced: boolean, deadlineMs = this.#ticket.drainTimeoutMs): void {
    if (this.#isDraining) {
      if (!isReplaced) for (const loop of this.#loops) drainLoop(loop, deadlineMs, isReplaced);
      return;
    }
    this.#isDraining = true;
    for (const number of this.#sockets) this.#system.removeSocket(number);
    this.#leaveIfAllHave();
    for (const loop of this.#loops) drainLoop(loop, deadlineMs, isReplaced);
    // Also when a loop is in an endless callback, and no supervisor is left to kill this process.
    setTimeout(() => process.exit(1), deadlineMs + exitGraceMs).unref();
  }

  /** Reports once that the process takes no new connection: loops that listen take some until they have left. */
  #leaveIfAllHave(): void {
    if (this.#hasLeft || !this.#isDraining) return;
    if (this.#system.loopsListen && ![...this.#loops].every(({ hasLeft }) => hasLeft)) return;
    this.#hasLeft = true;
    this.#post({ type: 'leaving' });
  }

  /** After an unrequested end the loop starts again, or the supervisor replaces this process, whose others drain. */
  #threadEnded(loop: LoopEnd, error: unknown): void {
    const row = this.#rowOf(loop.index);
    row.clear(countsOfProcess);
    this.#loops.delete(loop);
    this.#threads.loopEnded(loop);
    this.#dropLink(loop.serial);
    this.#leaveIfAllHave();
    if (loop.isDraining) {
      if (error !== undefined) this.#print(loop, travelled(error));
      const { count, deadlineMs } = this.#wanted ?? {};
      if (!this.#isDraining && count !== undefined) this.#resize(count, deadlineMs ?? 0);
    } else if (!loop.hasEnded && !loop.hasFailed) {
      const thrown =
        error ?? new Error(`loop ${loop.index} has ended: the program called process.exit()`);
      const delayMs = this.#restartDelay(loop);
      if (delayMs === undefined) this.#failed(loop, travelled(thrown));
      else this.#restart(loop, travelled(thrown), delayMs);
    }
    this.#ended(loop);
  }

  /**
   * Returns the delay before a loop starts again whose thread has ended, in ms; `undefined`: the process is replaced.
   * A loop that ends before it is ready may have ended by what it got back, so it does not take the others along.
   */
  #restartDelay({ index, isReady }: LoopEnd): number | undefined {
    if (!this.#ticket.restartsLoops || this.#isDraining) return undefined;
    if (isReady) return 0;
    if (!this.#hasServed || this.#loops.size === 0) return undefined;
    const policy = this.#restarts.get(index) ?? new RestartPolicy();
    this.#restarts.set(index, policy);
    return policy.failed();
  }

  /** Starts a loop again whose thread has ended. */
  #restart(loop: LoopEnd, error: TravelledError, delayMs: number): void {
    this.#print(loop, error);
    this.#post({ type: 'loopLost', index: loop.index, error, delayMs });
    if (delayMs === 0) this.#startAgain(loop);
    else setTimeout(() => !this.#isDraining && this.#startAgain(loop), delayMs).unref();
  }

  #startAgain(loop: LoopEnd): void {
    try {
      this.#endIfLate(this.#startThread(loop.index));
    } catch (refused) {
      this.#failed(loop, travelled(refused)); // no thread, no memory
    }
  }

  #ended(loop: LoopEnd): void {
    if (loop.hasEnded) return;
    loop.hasEnded = true;
    if (![...this.#loops].every(({ hasEnded }) => hasEnded)) return;
    this.#system.close();
    this.#system.up.unref(); // the program's exit handlers may still need workers
    // Ends what the program still has in its event loop (timers, database clients).
    setTimeout(() => process.exit(), exitGraceMs).unref();
  }
}

function changeFolder(folder: string): ToLoop {
  try {
    process.chdir(folder);
    return { type: 'folderChanged', error: undefined };
  } catch (error) {
    return { type: 'folderChanged', error: travelled(error) };
  }
}

function drainLoop(loop: LoopEnd, deadlineMs: number, isReplaced: boolean): void {
  loop.isDraining = true;
  loop.link.post({ body: { type: 'drain', deadlineMs, isReplaced } });
}

/** Time for the program's exit handlers, in ms. */
const exitGraceMs = 5000;
/** Words that stay when the loop of a row ends: the supervisor reads from them how much the process has served. */
const countsOfProcess = [
  boardAt.placed,
  boardAt.requests,
  boardAt.turnedAway,
  boardAt.filesSent,
  boardAt.filesOpen,
  boardAt.filesKib,
  boardAt.exhausted,
];
