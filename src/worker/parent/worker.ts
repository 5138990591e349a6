// A worker for its parent: the process or thread, the link to it, and the calls that were handed to it and
// are not answered yet. Its end is reported once, after every frame that it had sent was read: an answer
// that left before the death counts.
//
// Slots: a task in flight has a slot, an index into the worker's table, which is what frames carry. A slot
// is free again when its answer came. A reclaimed task still has a frame in the ring, which must not claim
// the next task of the slot: its slot is free when a later task was answered.
// Long (over 400 lines), because life, slots and frames of a worker change together.

import { isMainThread, MessageChannel } from 'node:worker_threads';
import {
  type ByteReader,
  type ChannelEnd,
  type ChannelOffer,
  offerChannel,
} from '../../channels/index.js';
import {
  createDataImporter,
  createImporter,
  moduleOf,
  type ProgramFiles,
  programFiles,
} from '../../context/index.js';
import { CodedError } from '../../errors.js';
import {
  clearTimeout,
  Lifecycle,
  messageOf,
  nowMs,
  type ProfileAnswer,
  setTimeout,
  startAnswerTimer,
} from '../../lib/index.js';
import { nativeBinding } from '../../native.js';
import { bufferCarrier } from '../both/buffers.js';
import { type Call, isOneWay, needs } from '../both/call.js';
import { Loads } from '../both/loads.js';
import { Parcels } from '../both/parcels.js';
import { Link, readError, rest } from '../link.js';
import type { FilledPartition } from '../partition/options.js';
import { PartitionRules } from '../partition/rules.js';
import { startPartition } from '../partition/sandbox.js';
import {
  frame,
  framesOfPartition,
  noSetup,
  parseMemory,
  parseReady,
  runTimeUnitsPerMs,
  type WorkerMemory,
  type WorkerTicket,
} from '../protocol.js';
import type {
  ShownKind,
  WorkerExit,
  WorkerHandle,
  WorkerOptions,
  WorkerSettings,
} from '../types.js';
import { isUnreadable, uncaughtError, withReason } from './exit.js';
import { parentExporter } from './exporter.js';
import { MemoryRequest } from './memory-request.js';
import { NestedMaps } from './nested.js';
import { startProcess } from './process.js';
import { ProfileRequests } from './profile-requests.js';
import { type EndingWorker, endsBefore, endsWithProgram } from './program-end.js';
import type { SharedLease } from './shared-workers.js';
import { type KnownFailure, type StartFailure, startFailure } from './start-failure.js';
import { startThread } from './thread.js';

/** Gets the answers to calls, each as it was handed over; its slot is free. Hot: one object for all workers. */
export interface TaskListener<C extends Call> {
  onResult(worker: Worker<C>, call: C, ranMs: number, result: unknown): void;
  onError(worker: Worker<C>, call: C, ranMs: number, error: unknown): void;
  /** The call answers with a stream: `onItem` follows, then `onResult` or `onError`. */
  onStream(worker: Worker<C>, call: C, slot: number): void;
  onItem(call: C, item: unknown): void;
  /** The task reports a value before its answer; `taken` lets it go on, in a partition with an answer. */
  onReport(worker: Worker<C>, call: C, value: unknown, taken: (answer?: unknown) => void): void;
  /** An item came that cannot be read here: the stream has a hole, and its worker goes on with it. */
  onItemLost(worker: Worker<C>, call: C, error: CodedError): void;
  /** There is room in the channel again. */
  onDrain(worker: Worker<C>): void;
}

/** Follows the life of a worker. */
export interface WorkerOwner<C extends Call> {
  onReady(worker: Worker<C>): void;
  /** Last of all. `unanswered` in the order handed over; `failure` when it was never ready. */
  onExit(
    worker: Worker<C>,
    exit: WorkerExit,
    unanswered: C[],
    failure: StartFailure | undefined,
  ): void;
}

/** `call`: the first that waits for the module; `undefined`: it was reclaimed. */
interface LostLoad<C> {
  readonly call: C | undefined;
  readonly specifier: string;
}

type WorkerState = 'starting' | 'ready' | 'closing' | 'ended';

let lastWorkerId = 0;
/** Maximum time for a channel to end after its process has, in ms. */
const channelEndMs = 2_000;
/** Maximum time for the user's teardown of a partition, in ms. */
const teardownMs = 30_000;
const mib = 2 ** 20;
const noBytes = new Uint8Array(0);
const noProgram: ProgramFiles = { urls: [], main: '' };
const noSetUp = { id: noSetup, definitions: [], state: undefined, buffers: [] };

export class Worker<C extends Call> implements EndingWorker {
  readonly id: number;
  readonly kind: WorkerOptions['kind'];
  readonly pinnedCores: readonly number[];
  readonly startedAtMs = nowMs();
  /** For the owner: order of last use, expected work in flight in ms, true while the channel is full. */
  lastUsed = 0;
  pendingMs = 0;
  isFull = false;
  /**
   * For the owner: calls that go on though they were given up. The worker gets nothing new, and may be
   * killed.
   */
  readonly abandoned = new Set<C>();
  tasksDone = 0;
  inFlight = 0;
  /** True: it gets no more calls, and leaves when its calls are answered. */
  isRetiring = false;
  /** True: its owner has ended it. */
  wasEnded = false;
  /** True: the program's loop has run empty, so no other worker is to take its place. */
  leavesWithProgram = false;
  readonly #concurrentTasks: number;
  readonly #maxTasks: number;
  readonly #settings: WorkerSettings;
  readonly #handle: WorkerHandle;
  readonly #lease: SharedLease | undefined;
  readonly #link: Link;
  readonly #end: ChannelEnd;
  readonly #nested: NestedMaps;
  readonly #memory: MemoryRequest;
  readonly #profiles: ProfileRequests;
  readonly #parcels: Parcels | undefined;
  /** Only of a partition. */
  readonly #rules: PartitionRules | undefined;
  readonly #owner: WorkerOwner<C>;
  readonly #tasks: TaskListener<C>;
  readonly #life: Lifecycle<WorkerState>;
  readonly #calls: (C | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  /** Slots of reclaimed tasks, and when each slot was last sent. */
  readonly #reclaimedSlots: number[] = [];
  readonly #sentAt: number[] = [];
  #sentCount = 0;
  /** The table as it was when the worker ended. */
  #lost: (C | undefined)[] = [];
  /** Module that it was loading for a call when it ended. Unknown without claims. */
  lostLoad: LostLoad<C> | undefined;
  #startTimer: NodeJS.Timeout | undefined;
  #exit: WorkerExit | undefined;
  #channelError: Error | undefined;
  /** Reason why it will not be ready, known before it ends. */
  #startFailure: KnownFailure | undefined;
  #hasChannelEnded = false;
  /** Uncaught error that it reported before its end. */
  #uncaught: Error | undefined;

  private constructor(
    id: number,
    settings: WorkerSettings,
    owner: WorkerOwner<C>,
    tasks: TaskListener<C>,
  ) {
    this.id = id;
    this.kind = settings.kind;
    this.pinnedCores = settings.pinnedCores;
    this.#concurrentTasks = settings.concurrentTasks;
    this.#maxTasks = settings.maxTasksPerWorker;
    this.#settings = settings;
    this.#owner = owner;
    this.#tasks = tasks;
    this.#life = new Lifecycle<WorkerState>(`worker ${id}`, 'starting', {
      starting: ['ready', 'closing', 'ended'],
      ready: ['closing', 'ended'],
      closing: ['ended'],
      ended: [],
    });
    const { channel, kind, spin, partition } = settings;
    const maxFrameBytes = partition && partition.resultMb * mib;
    const offer = offerChannel(channel, {
      worker: kind,
      spin,
      isIsolated: partition !== undefined,
      isGuest: partition?.kind === 'vm',
      maxFrameBytes,
    });
    const loads = settings.kind === 'thread' ? new Loads() : undefined;
    const beside = settings.kind === 'thread' ? new MessageChannel() : undefined;
    this.#parcels = beside && new Parcels(beside.port1);
    const ticket: WorkerTicket = {
      workerId: id,
      parentPid: process.pid,
      parentThread: isMainThread ? 0 : (nativeBinding()?.threadId() ?? 0),
      channel: offer.ticket,
      concurrentTasks: settings.concurrentTasks,
      maxRssBytes: settings.maxRssBytes,
      pinnedCores: settings.pinnedCores,
      niceIncrement: settings.niceIncrement,
      loads: loads?.buffer,
      parcels: beside?.port2,
    };
    try {
      if (settings.remote !== undefined) {
        this.#handle = settings.remote.start(ticket, settings, () => this.retire());
      } else if (settings.shared === undefined) {
        this.#handle = startHere(ticket, offer, settings);
      } else {
        this.#lease = settings.shared.acquire(offer.stdio.filter(isDescriptor));
        this.#handle = this.#lease;
      }
    } catch (error) {
      offer.discard();
      this.#parcels?.close();
      throw error;
    }
    void this.#handle.exited.then((exit) => this.#processEnded(exit));
    this.#end = offer.open(this.#handle.pipe);
    // Blocks go back to the worker by which they came.
    const buffers = bufferCarrier(() => this.#end.blocks, this.#parcels);
    this.#link = new Link({
      end: this.#end,
      exporter: parentExporter(),
      importer:
        settings.partition === undefined
          ? createImporter({ exporter: parentExporter(), buffers })
          : createDataImporter(),
      parcels: this.#parcels,
      frames: settings.partition && framesOfPartition,
      isFar: settings.remote !== undefined,
      what: 'the arguments',
      events: {
        onFrame: (kind, slot, target, body) => this.#receive(kind, slot, target, body),
        onDrain: () => tasks.onDrain(this),
        onClose: (error) => this.#channelEnded(error),
        onDefine: () => loads?.sent(),
      },
    });
    this.#memory = new MemoryRequest(this.#link);
    this.#profiles = new ProfileRequests(this.#link);
    this.#rules = partition && this.#rulesOf(partition);
    this.#nested = new NestedMaps(this.#link, parentExporter(), settings.nested);
  }

  #rulesOf(partition: FilledPartition): PartitionRules {
    return new PartitionRules({
      partition,
      leaveMs: this.#settings.hasTeardown ? teardownMs : channelEndMs,
      label: () => this.label,
      sentCalls: () => this.#sentCount,
      onDistrust: () => {
        this.isRetiring = true; // another call must not be lost with it
      },
      fail: (error) => this.#link.fail(error),
      hasExited: () => this.#exit !== undefined,
      isWorking: () => this.inFlight > 0 && !this.#hasChannelEnded,
      kill: () => this.#handle.kill(),
    });
  }

  /** Starts a worker; `onReady` or `onExit` follows. Throws when the channel cannot be opened. */
  static start<C extends Call>(
    settings: WorkerSettings,
    owner: WorkerOwner<C>,
    tasks: TaskListener<C>,
  ): Worker<C> {
    lastWorkerId += 1;
    const worker = new Worker<C>(lastWorkerId, settings, owner, tasks);
    worker.#begin(settings);
    if (settings.shared === undefined && settings.remote === undefined) endsWithProgram(worker);
    return worker;
  }

  #begin(settings: WorkerSettings): void {
    this.#link.ref();
    const isOpen = settings.partition === undefined; // names of files are no affair of a partition
    this.#link.post(frame.program, 0, 0, isOpen ? programFiles() : noProgram);
    const { id, state: bytes = noBytes, ...needs } = settings.setup ?? noSetUp;
    this.#link.postSnapshot(frame.setup, 0, id, { ...needs, bytes });
    if (settings.hasTeardown) this.#link.post(frame.teardown, 0, 0, undefined);
    this.#watchStart(settings.startTimeoutMs);
  }

  #watchStart(timeoutMs: number): void {
    const wasBusy = this.#isElsewhere;
    const timer = startAnswerTimer(timeoutMs, () => {
      if (this.#startTimer !== timer) return;
      if (wasBusy || this.#isElsewhere) {
        this.#watchStart(timeoutMs); // it is well, and reaches us later
        return;
      }
      const text = `it was not ready after ${timeoutMs} ms`;
      this.#startFailure = { text, thrown: undefined };
      this.#handle.kill();
    });
    timer?.unref();
    this.#startTimer = timer;
  }

  #endWatch(): void {
    clearTimeout(this.#startTimer);
    this.#startTimer = undefined;
  }

  /** True: its program has opened the channel. */
  get #hasBegun(): boolean {
    return this.#end.hasPeerOpened?.() ?? true;
  }

  /** True: it is well, but has not reached us yet. */
  get #isElsewhere(): boolean {
    return this.isBusyElsewhere || this.#handle.isWaiting === true;
  }

  /** For stats and events. */
  get shownKind(): ShownKind {
    return this.#settings.partition?.kind ?? this.kind;
  }

  get pid(): number | undefined {
    return this.#handle.pid;
  }

  /** Bytes to it and from it, since its start; as `Link` counts them. */
  get sentBytes(): number {
    return this.#link.sentBytes;
  }

  get receivedBytes(): number {
    return this.#link.receivedBytes;
  }

  /** Last memory statistics; `undefined` if none were requested, or it has not answered yet. */
  get memory(): WorkerMemory | undefined {
    return this.#memory.last;
  }

  /**
   * Requests its memory statistics: resolves when it has answered or has ended, at once if it is not ready.
   */
  async requestMemory(): Promise<void> {
    if (this.#life.state === 'ready') await this.#memory.send();
  }

  /**
   * Starts a CPU profile of it: `send` gets `started`, then the profile or the reason why there is none. Returns the
   * function that gives up.
   */
  profile(seconds: number, send: (answer: ProfileAnswer) => void): () => void {
    const problem = this.#profileProblem;
    if (problem === undefined) return this.#profiles.start(seconds, this.#handle.threadId, send);
    send({ problem });
    return () => {};
  }

  get #profileProblem(): string | undefined {
    if (this.#settings.partition !== undefined) {
      return 'it is a sandbox, and code that is not trusted gets no inspector';
    }
    if (this.#settings.remote !== undefined) return 'it runs on another machine';
    if (this.#life.state === 'starting') return 'it has not started yet';
    return this.#life.state !== 'ready' || this.#hasChannelEnded ? 'it is ending' : undefined;
  }

  get state(): WorkerState {
    return this.#life.state;
  }

  /** True: a call may be handed over now. */
  get isOpen(): boolean {
    return this.#life.state === 'ready' && this.#hasRoom;
  }

  /**
   * True: it starts, and calls may be handed over that it begins when it is ready. A thread does so even
   * while the event loop of its parent is blocked. Until then each can be reclaimed.
   */
  get takesOffers(): boolean {
    const { shared, remote } = this.#settings;
    return (
      this.#life.state === 'starting' &&
      this.kind === 'thread' &&
      shared === undefined &&
      remote === undefined &&
      this.#end.claims !== undefined &&
      this.inFlight < this.#concurrentTasks &&
      this.inFlight + this.#reclaimedSlots.length + 1 < this.maxInFlight &&
      this.#hasRoom
    );
  }

  get #hasRoom(): boolean {
    return (
      !this.isRetiring &&
      !this.isFull &&
      this.abandoned.size === 0 &&
      this.inFlight + this.#reclaimedSlots.length < this.maxInFlight &&
      this.inFlight + this.tasksDone < this.#maxTasks
    );
  }

  /** True: other parents use it, too. */
  get isShared(): boolean {
    return this.#lease !== undefined;
  }

  /** True: it is shared, and works for another parent. */
  get isBusyElsewhere(): boolean {
    return this.#lease?.runsTaskOf === 'another';
  }

  /** True: it is shared and has calls of ours, none of which is known to have begun. */
  get isBehindOthers(): boolean {
    return this.#lease !== undefined && this.inFlight > 0 && this.#lease.runsTaskOf !== 'this';
  }

  /** Name in messages. */
  get label(): string {
    return this.pid === undefined || this.kind !== 'process'
      ? `worker ${this.id}`
      : `worker ${this.id}, process ${this.pid}`;
  }

  /**
   * Maximum number of calls in flight. More than run at once are handed over only if they can be reclaimed.
   */
  get maxInFlight(): number {
    return this.#end.claims?.slotCount ?? this.#concurrentTasks;
  }

  /**
   * Hands a call over. Any result but `sent` leaves the call with the caller; see `Link.trySendCall`. So
   * does an error (`SHARED_MEMORY_FULL`), for a call that would fail elsewhere as well.
   */
  trySend(call: C): 'sent' | 'full' | 'closed' {
    const slot = this.#freeSlots.pop() ?? this.#calls.push(undefined) - 1;
    let outcome: 'sent' | 'full' | 'closed' | undefined;
    try {
      this.#end.claims?.open(slot);
      outcome = this.#link.trySendCall(slot, call);
    } finally {
      if (outcome !== 'sent') this.#freeSlots.push(slot);
    }
    if (outcome !== 'sent') return outcome;
    this.#calls[slot] = call;
    this.#sentCount += 1;
    this.#sentAt[slot] = this.#sentCount;
    if (this.inFlight === 0 && this.#life.state === 'ready') this.#link.ref();
    this.inFlight += 1;
    return 'sent';
  }

  /** Reclaims a call that has not started; false when it has, or cannot be reclaimed here. */
  tryReclaim(call: C): boolean {
    const slot = this.#calls.indexOf(call);
    // One slot stays: only an answer frees those of reclaimed tasks.
    if (slot < 0 || this.#reclaimedSlots.length + 1 >= this.maxInFlight) return false;
    if (isOneWay(call) || this.#end.claims?.tryClaim(slot) !== true) return false;
    this.#link.unlend(call);
    this.#leave(slot);
    this.#reclaimedSlots.push(slot);
    if (this.isRetiring) this.retire();
    return true;
  }

  /**
   * Prevents a call from beginning, and the worker answers it; false when it has begun, or without claims.
   */
  tryCancel(call: C): boolean {
    const slot = this.#calls.indexOf(call);
    return slot >= 0 && this.#end.claims?.tryCancel(slot) === true;
  }

  /** True: nothing that was sent before keeps the worker from beginning this call. */
  isNext(call: C): boolean {
    const sentAt = (each: number): number => this.#sentAt[each] ?? 0;
    const slot = this.#calls.indexOf(call);
    const before = [...this.#calls.keys()].filter(
      (each) => this.#calls[each] !== undefined && sentAt(each) < sentAt(slot),
    );
    const hasBegun = (each: number): boolean => this.#end.claims?.isOpen(each) !== true;
    return slot >= 0 && before.length < this.#concurrentTasks && before.every(hasBegun);
  }

  /** True: modules of a call load in it. False also without claims. */
  get isLoading(): boolean {
    return !this.#hasChannelEnded && this.#loading !== undefined;
  }

  /** True: a call was reclaimed, and none that was sent later is answered yet. */
  get hasReclaimed(): boolean {
    return this.#reclaimedSlots.length > 0;
  }

  /** The definition that it loads though no call here needs it; `undefined` also while a call runs. */
  get orphanLoad(): number | undefined {
    const loading = this.#hasChannelEnded ? undefined : this.#loading;
    if (loading === undefined) return undefined;
    const { setup } = this.#settings;
    const isOfSetup = this.#life.state === 'starting' && setup?.definitions.includes(loading);
    const isNeeded = [...this.#calls.entries()].some(
      ([slot, call]) =>
        call !== undefined && (this.#end.claims?.isOpen(slot) !== true || needs(call, loading)),
    );
    return isOfSetup === true || isNeeded ? undefined : loading;
  }

  /** Returns the module that it loads now, and the first of `calls` that waits for it. */
  #loadOf(calls: readonly C[], isStart: boolean): LostLoad<C> | undefined {
    const { claims } = this.#end;
    const definition = this.#loading;
    if (definition === undefined) return undefined;
    const slotOf = (call: C): number => this.#calls.indexOf(call);
    const sentAt = (call: C): number => this.#sentAt[slotOf(call)] ?? 0;
    const waiting = calls.filter(
      (call) => claims?.isOpen(slotOf(call)) === true && needs(call, definition),
    );
    const [call] = waiting.sort((a, b) => sentAt(a) - sentAt(b));
    const specifier = moduleOf(parentExporter(), definition);
    const isOfSetup = isStart && call === undefined;
    return specifier === undefined || isOfSetup ? undefined : { call, specifier };
  }

  /** True: it has not answered this call yet. */
  has(call: C): boolean {
    return this.#calls.includes(call);
  }

  /** True: a call that `onExit` got had begun. Without claims it counts as begun. */
  hasBegun(call: C): boolean {
    const slot = this.#lost.indexOf(call);
    const isOpen = this.#end.claims?.tryClaim(slot) === true;
    // A partition may open a claim again: without this its call could end one worker after the other.
    return isOneWay(call) || !isOpen || (this.#rules !== undefined && call === this.#oldestLost);
  }

  /** The call that was sent before all others that it had when it ended. */
  get #oldestLost(): C | undefined {
    const slots = [...this.#lost.keys()].filter((slot) => this.#lost[slot] !== undefined);
    const [oldest = -1] = slots.sort((a, b) => (this.#sentAt[a] ?? 0) - (this.#sentAt[b] ?? 0));
    return this.#lost[oldest];
  }

  /** The definition that it loads. What a partition writes there is not believed. */
  get #loading(): number | undefined {
    return this.#rules === undefined ? this.#end.claims?.loading : undefined;
  }

  /** Calls in flight, in no order. */
  *calls(): Generator<C> {
    for (const call of this.#calls) if (call !== undefined) yield call;
  }

  /** Aborts the task's signal inside the worker. */
  abort(call: C): void {
    const slot = this.#calls.indexOf(call);
    if (slot >= 0) this.#link.post(frame.abort, slot, 0, undefined);
  }

  /** Lets a stream send `items` more; 0 ends it. */
  grant(slot: number, items: number): void {
    if (this.#hasChannelEnded) return;
    this.#rules?.granted(slot, items);
    this.#link.post(frame.credit, slot, items, undefined);
  }

  /** Lets it drop a pinned function. */
  forget(id: number): void {
    if (!this.#hasChannelEnded) this.#link.forget(id);
  }

  /** Gives it no more calls: it leaves when it has answered those it has, and `onExit` follows. */
  retire(): void {
    this.isRetiring = true;
    if (this.inFlight === 0) this.close();
  }

  /** Closes it after its calls; `onExit` follows. */
  close(): void {
    if (!this.#life.tryTransition('closing')) return;
    this.#handle.ref();
    this.#link.close();
    this.#rules?.killLater();
  }

  /** Ends it now; `onExit` follows. */
  kill(): void {
    this.wasEnded = true;
    this.#handle.ref();
    this.#handle.kill();
  }

  /** For program-end.ts. */
  get processId(): number | undefined {
    return this.kind === 'process' ? this.pid : undefined;
  }

  get isIdle(): boolean {
    return this.inFlight === 0;
  }

  leaveWithProgram(): void {
    this.leavesWithProgram = true;
    this.retire();
  }

  closeNow(): void {
    this.wasEnded = true;
    if (this.#life.state === 'starting') this.#handle.kill();
    else this.#link.close();
  }

  terminate(): void {
    this.wasEnded = true;
    this.#handle.ref();
    this.#handle.terminate();
  }

  /**
   * Frees the slot of an answered call. The worker reads in order: it has passed every frame sent before.
   */
  #free(slot: number): void {
    this.#leave(slot);
    this.#freeSlots.push(slot);
    if (this.#reclaimedSlots.length === 0) return;
    const sentAt = (each: number): number => this.#sentAt[each] ?? 0;
    for (const each of this.#reclaimedSlots.splice(0)) {
      (sentAt(each) < sentAt(slot) ? this.#freeSlots : this.#reclaimedSlots).push(each);
    }
  }

  #leave(slot: number): void {
    this.#calls[slot] = undefined;
    this.#rules?.left(slot);
    this.inFlight -= 1;
    if (this.inFlight === 0 && this.#life.state !== 'starting') this.#link.unref();
  }

  #receive(kind: number, slot: number, target: number, body: ByteReader): void {
    if (this.#rules?.isDistrusted === true) return;
    switch (kind) {
      case frame.result:
      case frame.error:
        this.#answer(kind, slot, target, body);
        break;
      case frame.stream:
      case frame.item: {
        const call = this.#calls[slot];
        if (call === undefined) this.#rules?.unasked();
        else if (this.#rules?.mayStream(kind, slot) === false) break;
        else if (kind === frame.stream) this.#tasks.onStream(this, call, slot);
        else this.#item(call, body);
        break;
      }
      case frame.failedAt: {
        const call = this.#calls[slot];
        if (call === undefined || call.failedAt >= 0) this.#rules?.unasked();
        if (call !== undefined) call.failedAt = target;
        break;
      }
      case frame.ready:
        if (this.#life.state !== 'starting') this.#rules?.unasked();
        this.#becomeReady(body);
        break;
      case frame.startFailed:
        if (this.#startFailure !== undefined || this.#life.state !== 'starting') {
          this.#rules?.unasked();
        }
        this.#setupFailed(body);
        break;
      case frame.report:
        this.#reported(slot, target, body);
        break;
      case frame.uncaught:
        if (this.#uncaught !== undefined) this.#rules?.unasked();
        this.#uncaught ??= uncaughtError(this.#readThrown(body));
        break;
      case frame.memory: {
        if (!this.#memory.isPending) this.#rules?.unasked();
        const memory = this.#parsed(() => parseMemory(this.#link.codec.read(body)));
        if (memory !== undefined) this.#memory.answered(memory);
        break;
      }
      case frame.profiled:
        this.#profiles.answered(target, this.#link.codec.read(body));
        break;
      case frame.retire:
        if (this.isRetiring) this.#rules?.unasked();
        this.retire();
        break;
      default:
        if (this.#nested.receive(kind, slot, target, body)) break;
        throw new CodedError('WORKER_PROTOCOL', `${this.label} sent a frame of kind ${kind}`);
    }
  }

  #reported(slot: number, number: number, body: ByteReader): void {
    const isAnswered = this.#rules !== undefined;
    const taken = (answer?: unknown): void => {
      // Many may answer before one that is distrusted has ended.
      if (this.#hasChannelEnded || this.#rules?.isDistrusted === true) return;
      this.#link.post(frame.reported, slot, number, isAnswered ? answer : undefined, 'the answer');
      this.#rules?.checkWaiting(this.#link.waitingFrames, this.#link.waitingBytes);
      this.#rules?.reportTaken();
    };
    let value: unknown;
    const call = this.#calls[slot];
    try {
      value = this.#link.codec.read(body); // also without a listener: its blocks go back
    } catch (error) {
      if (call !== undefined) this.#tasks.onItemLost(this, call, readError(error));
      this.#rules?.distrust(error);
      return;
    }
    if (call === undefined) {
      this.#rules?.unasked();
      this.#rules?.reported();
      taken();
    } else {
      this.#rules?.reported();
      this.#tasks.onReport(this, call, value, taken);
    }
  }

  #item(call: C, body: ByteReader): void {
    let item: unknown;
    try {
      item = this.#link.codec.read(body);
    } catch (error) {
      this.#tasks.onItemLost(this, call, readError(error));
      this.#rules?.distrust(error);
      return;
    }
    this.#tasks.onItem(call, item);
  }

  #answer(kind: number, slot: number, target: number, body: ByteReader): void {
    const call = this.#calls[slot];
    if (call === undefined) {
      this.#rules?.unasked();
      return; // given up meanwhile
    }
    let value: unknown;
    let isError = kind === frame.error;
    try {
      value = isError ? this.#link.importer.importValue(rest(body)) : this.#link.codec.read(body);
    } catch (error) {
      value = error;
      isError = true;
      this.#rules?.distrust(error);
    }
    this.#free(slot);
    this.tasksDone += 1;
    const ranMs = target / runTimeUnitsPerMs;
    if (isError) this.#tasks.onError(this, call, ranMs, value);
    else this.#tasks.onResult(this, call, ranMs, value);
    if (this.isRetiring || this.tasksDone >= this.#maxTasks) this.retire();
  }

  /** `undefined`: a partition has sent what cannot be parsed, and ends for it. */
  #parsed<T>(parse: () => T): T | undefined {
    try {
      return parse();
    } catch (error) {
      if (this.#rules === undefined) throw error;
      this.#rules.distrust(error);
      return undefined;
    }
  }

  #becomeReady(body: ByteReader): void {
    if (this.#parsed(() => parseReady(this.#link.codec.read(body))) === undefined) return;
    if (!this.#life.tryTransition('ready')) return; // closed while it started
    this.#endWatch();
    this.#owner.onReady(this);
    if (this.inFlight === 0) this.#link.unref();
  }

  #setupFailed(body: ByteReader): void {
    const thrown = this.#readThrown(body);
    this.#startFailure = {
      text: `its setup failed: ${messageOf(thrown)}`,
      thrown: { error: thrown },
    };
  }

  #readThrown(body: ByteReader): unknown {
    try {
      return this.#link.importer.importValue(rest(body));
    } catch (error) {
      return error;
    }
  }

  #processEnded(exit: WorkerExit): void {
    this.#exit = exit;
    this.#endWatch();
    if (this.#hasChannelEnded) {
      this.#finish(exit);
      return;
    }
    const timer = setTimeout(() => this.#channelEnded(undefined), channelEndMs);
    timer.unref();
    this.#end.peerExited?.();
  }

  #channelEnded(error: Error | undefined): void {
    if (this.#hasChannelEnded) return;
    this.#hasChannelEnded = true;
    this.#channelError = error;
    if (this.#exit !== undefined) {
      this.#finish(this.#exit);
      return;
    }
    this.#handle.ref(); // its end is still to come, and the channel keeps nothing alive any more
    if (isUnreadable(error))
      this.#handle.kill(); // a worker that cannot be read is replaced
    else this.#link.close(); // it left first (its set-up failed), and waits for our close
    this.#rules?.killLater();
  }

  #finish(exit: WorkerExit): void {
    const isStart = this.#life.state === 'starting';
    if (!this.#life.tryTransition('ended')) return;
    endsBefore(this);
    this.#link.unref();
    this.#nested.end();
    this.#memory.end();
    this.#profiles.end();
    const unanswered = [...this.calls()];
    this.lostLoad = this.#loadOf(unanswered, isStart);
    this.#lost = this.#calls.splice(0);
    this.inFlight = 0;
    const limit = this.#rules?.limitOf(this.#channelError);
    const described = withReason(exit, this.#uncaught, this.#channelError, limit);
    const failure = isStart
      ? startFailure(this.label, this.#startFailure, described, this.#settings, this.#hasBegun)
      : undefined;
    this.#owner.onExit(this, described, unanswered, failure);
    this.#parcels?.close();
    this.#link.destroy(); // last: until here the claims are needed
  }
}

function startHere(
  ticket: WorkerTicket,
  offer: ChannelOffer,
  settings: WorkerSettings,
): WorkerHandle {
  if (settings.kind === 'thread') return startThread(ticket, offer, settings);
  const { partition } = settings;
  if (partition === undefined) return startProcess(ticket, offer, settings);
  return startPartition(ticket, offer, settings, partition);
}

function isDescriptor(entry: number | 'pipe'): entry is number {
  return entry !== 'pipe';
}
