// Executes the frames of a parent: one task after the other (or as many at a time as the concurrency limit
// allows), each answered with exactly one result or error, in a process that survives whatever the task
// threw. A task that its parent has reclaimed in the meantime is skipped.
// Not here: turning values into frames (link.ts), starting and leaving (entry.ts).

import { ByteReader, type Claims } from '../../channels/index.js';
import { type Exporter, exportError, type Importer, reduceError } from '../../context/receiving.js';
import { nowMs } from '../../lib/index.js';
import type { ConcurrencyLimit } from '../both/concurrency-limit.js';
import { type Link, rest } from '../link.js';
import {
  abortsNext,
  type Chunk,
  failedAtEnd,
  frame,
  parseChunk,
  runTimeUnitsPerMs,
} from '../protocol.js';
import { ItemFailure, isThenable, runChunk, withoutUnsendable } from './chunk.js';
import { callInTask, type Failure, leaveTask, type Reporter, RunningTask } from './current-task.js';
import { sampleMemory } from './own-memory.js';
import { OwnProfiles } from './own-profiles.js';
import { EndFailure, generatorOf, StreamSender } from './stream-sender.js';

export interface RunnerOptions {
  readonly link: Link;
  readonly exporter: Exporter;
  readonly importer: Importer;
  readonly claims: Claims | undefined;
  readonly concurrencyLimit: ConcurrencyLimit;
  readonly maxRssBytes: number;
  /** True: count only this thread's memory, because resident memory is the whole process's. */
  readonly isThread: boolean;
  /** `state`: empty when the function of the definition `target` has none. */
  readonly onSetup: (target: number, state: Uint8Array) => void;
  readonly onTeardown: () => void;
  /** A task begins, or has ended. */
  readonly onTurn: ((isAtWork: boolean) => void) | undefined;
}

interface WaitingCall {
  readonly kind: number;
  readonly task: number;
  readonly target: number;
  readonly body: ByteReader;
  /** True: its caller has given it up. */
  isAborted: boolean;
}

/** Minimum time between two memory checks, in ms of run time. */
const memoryCheckMs = 200;
const maxInt32 = 2 ** 31 - 1;

export class Runner {
  readonly #options: RunnerOptions;
  readonly #link: Link;
  readonly #running = new Map<number, RunningTask>();
  readonly #streams = new Map<number, StreamSender>();
  /** Calls that wait for a running one. */
  readonly #waiting: WaitingCall[] = [];
  /** Reports that were not taken yet, by number. */
  readonly #reports = new Map<number, (answer: unknown) => void>();
  readonly #profiles: OwnProfiles;
  #lastReport = 0;
  #memoryCheckedAtMs = 0;
  #hasEnded = false;
  /** Calls that came with the start of the worker, until its set-up is done. */
  #early: WaitingCall[] | undefined = [];
  /** Slots whose next call was given up before it came here. */
  readonly #abortedNext = new Set<number>();

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#link = options.link;
    this.#profiles = new OwnProfiles(options.link);
  }

  /** Returns false for a frame that concerns no task of the parent. */
  receive(kind: number, task: number, target: number, body: ByteReader): boolean {
    if (this.#hasEnded) return false;
    switch (kind) {
      case frame.call:
      case frame.callWithState:
      case frame.chunk:
        this.#called(kind, task, target, body, this.#abortedNext.delete(task));
        break;
      case frame.abort:
        if (target === abortsNext) this.#abortedNext.add(task);
        else this.#abort(task);
        break;
      case frame.credit:
        this.#streams.get(task)?.grant(target);
        break;
      case frame.reported:
        this.#reports.get(target)?.(this.#link.codec.read(body));
        this.#reports.delete(target);
        break;
      case frame.teardown:
        this.#options.onTeardown();
        break;
      case frame.forget:
        this.#options.importer.forget(target);
        break;
      case frame.requestMemory:
        sampleMemory((memory) => {
          if (!this.#hasEnded) this.#link.post(frame.memory, 0, 0, memory);
        });
        break;
      case frame.profile:
        this.#profiles.receive(target, this.#link.codec.read(body));
        break;
      case frame.setup:
        this.#options.onSetup(target, rest(body));
        break;
      default:
        return false;
    }
    return true;
  }

  readonly #reporter: Reporter = (task, value) => {
    this.#lastReport = (this.#lastReport + 1) % maxInt32;
    const number = this.#lastReport;
    this.#link.post(frame.report, task.slot, number, value, 'the reported value');
    return new Promise((resolve) => {
      this.#reports.set(number, resolve);
    });
  };

  /** Begins early calls: the set-up is done. */
  ready(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const { kind, task, target, body, isAborted } of early) {
      this.#called(kind, task, target, body, isAborted);
    }
  }

  /** True: a task runs here. */
  get isAtWork(): boolean {
    return this.#running.size > 0;
  }

  /** Ends the session after its parent: waiting calls are not begun, running tasks are aborted. */
  end(): void {
    this.#hasEnded = true;
    this.#profiles.end();
    this.#waiting.length = 0;
    for (const task of this.#running.values()) task.abort();
    for (const stream of this.#streams.values()) stream.grant(0);
  }

  /** Begins a call, or keeps it until it may begin. `body` is lent for this turn. */
  #called(kind: number, task: number, target: number, body: ByteReader, isAborted: boolean): void {
    if (this.#early === undefined && this.#options.concurrencyLimit.hasRoom) {
      this.#call(kind, task, target, body, isAborted);
      return;
    }
    const kept = { kind, task, target, body: new ByteReader(rest(body)), isAborted };
    if (this.#early !== undefined) {
      this.#early.push(kept);
      return;
    }
    this.#waiting.push(kept);
    this.#options.concurrencyLimit.wait(() => {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        this.#call(next.kind, next.task, next.target, next.body, next.isAborted);
      }
    });
  }

  #abort(slot: number): void {
    this.#running.get(slot)?.abort();
    this.#streams.get(slot)?.grant(0); // it may wait for a reader that is gone
    for (const call of [...(this.#early ?? []), ...this.#waiting]) {
      if (call.task === slot) call.isAborted = true;
    }
  }

  /** Answers a call that was given up before it began; in turn, because answers free the slots before. */
  #answerAborted(kind: number, slot: number, target: number, body: ByteReader): void {
    try {
      this.#read(kind, target, body);
    } catch {
      // A call that cannot be read is not needed.
    }
    // A plain error, for a parent that has given up the call: the module of a class of ours would be parsed first.
    const error = Object.assign(new Error('it was aborted before it began'), { code: 'ABORTED' });
    this.#fail(slot, nowMs(), error);
  }

  #call(kind: number, slot: number, target: number, body: ByteReader, isAborted: boolean): void {
    const { claims } = this.#options;
    const isTaken = claims?.tryClaim(slot) === false;
    const isCancelled = isTaken && claims?.isCancelled(slot) === true;
    if (isTaken && !isCancelled) return; // reclaimed by the parent
    if (isAborted || isCancelled) {
      this.#answerAborted(kind, slot, target, body);
      return;
    }
    const task = new RunningTask(slot, this.#reporter);
    this.#options.onTurn?.(true);
    const startedMs = nowMs();
    let result: unknown;
    let unfinished: Promise<unknown> | undefined;
    try {
      const { fn, args } = this.#read(kind, target, body);
      const chunk = kind === frame.chunk ? parseChunk(args) : undefined;
      task.chunk = chunk;
      result = callInTask(task, this.#options.concurrencyLimit.isOne, () =>
        chunk === undefined
          ? Reflect.apply(fn, undefined, argumentList(args))
          : runChunk(fn, chunk, () => task.isAborted),
      );
      unfinished = this.#unfinished(slot, result);
    } catch (error) {
      this.#leave(task, this.#fail(slot, startedMs, error));
      return;
    }
    if (unfinished === undefined) this.#leave(task, this.#succeed(task, startedMs, result));
    else this.#finishLater(task, startedMs, unfinished);
  }

  #leave(task: RunningTask, failure: Failure | undefined): void {
    leaveTask(task, failure);
    this.#options.onTurn?.(false);
  }

  /** Returns the promise to await for a result. Throws what its getters and traps throw. */
  #unfinished(slot: number, result: unknown): Promise<unknown> | undefined {
    if (isThenable(result)) return Promise.resolve(result);
    const generator = generatorOf(result);
    return generator && this.#stream(slot, new StreamSender(this.#link, slot, generator));
  }

  /** Reads the arguments also when the function fails: otherwise their blocks never go back. */
  #read(kind: number, target: number, body: ByteReader) {
    const state = kind === frame.callWithState ? body.copy(body.i32()) : undefined;
    let args: unknown;
    let fn: (...args: unknown[]) => unknown;
    try {
      fn = this.#options.importer.importFunction(target, state);
    } finally {
      args = this.#link.codec.read(body);
    }
    return { fn, args };
  }

  #finishLater(task: RunningTask, startedMs: number, work: Promise<unknown>): void {
    this.#running.set(task.slot, task);
    this.#options.concurrencyLimit.acquire();
    void work
      .then(async (value) => {
        const generator = generatorOf(value);
        if (generator === undefined) return value;
        return this.#stream(task.slot, new StreamSender(this.#link, task.slot, generator));
      })
      .then(
        (value) => this.#succeed(task, startedMs, value),
        (error: unknown) => this.#fail(task.slot, startedMs, error),
      )
      .then((failure) => {
        this.#leave(task, failure);
        this.#running.delete(task.slot);
        this.#options.concurrencyLimit.release();
      });
  }

  async #stream(slot: number, sender: StreamSender): Promise<unknown> {
    this.#streams.set(slot, sender);
    try {
      return await sender.run();
    } finally {
      this.#streams.delete(slot);
    }
  }

  #succeed({ slot, chunk }: RunningTask, startedMs: number, result: unknown): Failure | undefined {
    const endedMs = nowMs();
    let failure: Failure | undefined;
    try {
      this.#link.post(frame.result, slot, runTime(startedMs, endedMs), result);
    } catch (error) {
      failure =
        chunk === undefined
          ? this.#fail(slot, startedMs, error)
          : this.#answerItemByItem(slot, startedMs, chunk, result, error);
    }
    if (this.#options.maxRssBytes > 0) this.#checkMemory(endedMs);
    return failure;
  }

  /** Finds the items whose results are to blame, when a chunk's answer cannot travel. */
  #answerItemByItem(
    slot: number,
    startedMs: number,
    chunk: Chunk,
    answer: unknown,
    thrown: unknown,
  ): Failure | undefined {
    try {
      const travelling = withoutUnsendable(chunk, answer, thrown, {
        trySend: (value) => this.#link.codec.release(this.#link.codec.pack(value)),
        reduce: (error) => reduceError(this.#options.exporter, error),
      });
      this.#link.post(frame.result, slot, runTime(startedMs, nowMs()), travelling);
      return undefined;
    } catch (error) {
      return this.#fail(slot, startedMs, error);
    }
  }

  #fail(slot: number, startedMs: number, thrown: unknown): Failure {
    const isPart = thrown instanceof ItemFailure || thrown instanceof EndFailure;
    const error = isPart ? thrown.error : thrown;
    if (isPart) {
      const at = thrown instanceof ItemFailure ? thrown.at : failedAtEnd;
      this.#link.post(frame.failedAt, slot, at, undefined);
    }
    const snapshot = exportError(this.#options.exporter, error);
    this.#link.postSnapshot(frame.error, slot, runTime(startedMs, nowMs()), snapshot);
    return { error };
  }

  #checkMemory(nowMs: number): void {
    if (nowMs - this.#memoryCheckedAtMs < memoryCheckMs) return;
    this.#memoryCheckedAtMs = nowMs;
    const sizeBytes = this.#options.isThread ? threadBytes() : process.memoryUsage.rss();
    if (sizeBytes > this.#options.maxRssBytes) {
      this.#link.post(frame.retire, 0, 0, undefined);
    }
  }
}

/** Returns the memory of this thread: its heap and the buffers of it. */
function threadBytes(): number {
  const { heapTotal, external } = process.memoryUsage();
  return heapTotal + external;
}

function runTime(startedMs: number, endedMs: number): number {
  return Math.min(maxInt32, Math.round((endedMs - startedMs) * runTimeUnitsPerMs));
}

function argumentList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
