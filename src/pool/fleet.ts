// The hosts of one pool: started as the load asks, replaced when they end, left to go when they are
// idle, too old or too large. What they work on is the dispatcher's business.
//
// A host that ends before it did anything counts as a failed start: what follows is in starts.ts.
// Long (over 400 lines), because growing, shrinking, resizing and replacing change one list of hosts.

import type { ChannelKind } from '../channels/index.js';
import type { FunctionSnapshot } from '../context/index.js';
import { CodedError } from '../errors.js';
import {
  allowedCores,
  coresToPin,
  failureOfStart,
  Host,
  type HostEvents,
  type HostExit,
  type NestedOwner,
  type SharedHosts,
  type StartFailure,
} from '../host/index.js';
import {
  announcements,
  clearTimeout,
  isMainRealm,
  nowMs,
  startTimer,
  whileHeld,
} from '../internal/index.js';
import { freePlace } from './by-place.js';
import { type FilledPoolOptions, optionsAt, type PoolSize } from './options.js';
import { hostsToStart, hostsToStop, type Load } from './scale.js';
import { idleEnd } from './start-failure.js';
import { type PoolHealth, Starts } from './starts.js';
import type { Task } from './task.js';

export type TaskHost = Host<Task>;

export interface FleetEvents extends Omit<HostEvents<Task>, 'onReady' | 'onRetire' | 'onExit'> {
  /** A host can take tasks. */
  onReady(host: TaskHost): void;
  /** A host ended, with tasks that it had not answered. True when one of them had begun, or loaded. */
  onExit(host: TaskHost, exit: HostExit, unanswered: Task[]): boolean;
  /** After `onExit`, for a host that ended by itself, or by an error that nothing caught, and not under a task. */
  onLost(host: TaskHost, exit: HostExit): void;
  /** After `onExit`: what waits may be sent elsewhere, or ask for another host. */
  onExited(): void;
  /** No host starts: what waits is rejected with `error`, or where it is not `isLasting` tried again. */
  onGiveUp(error: CodedError, isLasting: boolean): void;
}

export interface FleetOptions {
  readonly poolId: number;
  readonly options: FilledPoolOptions;
  readonly channel: ChannelKind;
  readonly setup: FunctionSnapshot | undefined;
  readonly events: FleetEvents;
  /** Who finds hosts for maps that run in hosts. */
  readonly nested: NestedOwner;
  /** Tasks that wait for a host. */
  readonly waitingTasks: () => number;
  /** Where hosts come from that others use as well; none: they are started here. */
  readonly shared: SharedHosts | undefined;
}

/** Waits until so many hosts are ready. */
interface WarmWaiter {
  readonly hosts: number;
  resolve(): void;
  reject(error: CodedError): void;
}

export class Fleet {
  readonly hosts: TaskHost[] = [];
  /** For `stats()`. */
  readonly counts = { startedHosts: 0, exitedHosts: 0, lostHosts: 0 };
  readonly #poolId: number;
  readonly #options: FilledPoolOptions;
  readonly #setup: FunctionSnapshot | undefined;
  readonly #channel: ChannelKind;
  readonly #events: FleetEvents;
  readonly #nested: NestedOwner;
  readonly #shared: SharedHosts | undefined;
  readonly #waitingTasks: () => number;
  readonly #starts: Starts;
  /** Of hosts that have ended. */
  readonly #formerBytes = { sentBytes: 0, receivedBytes: 0 };
  readonly #condemned = new Set<TaskHost>();
  /** Which of the pool's places each host has. */
  readonly #places = new Map<TaskHost, number>();
  readonly #exitWaiters: (() => void)[] = [];
  readonly #warmWaiters: WarmWaiter[] = [];
  /** How many hosts there may be; `resize` changes it. */
  #size: PoolSize;
  /** Who waits for the end of a host. */
  readonly #leaving = new Map<TaskHost, (() => void)[]>();
  #idleTimer: NodeJS.Timeout | undefined;
  #isClosing = false;
  /** Idle hosts that `warm` asks for, whatever the load. */
  #wantedIdle = 0;

  constructor(given: FleetOptions) {
    const { poolId, options, channel, setup, events, nested, waitingTasks, shared } = given;
    this.#poolId = poolId;
    this.#shared = shared;
    this.#options = options;
    this.#size = options;
    this.#channel = channel;
    this.#setup = setup;
    this.#events = events;
    this.#nested = nested;
    this.#waitingTasks = waitingTasks;
    this.#starts = new Starts({
      poolId,
      kind: options.host,
      startRetryMs: options.startRetryMs,
      waitingTasks,
      isWaitedFor: () => waitingTasks() > 0 || this.#warmWaiters.length > 0,
      hasReadyHost: () => this.#hasReadyHost,
      hasStartingHost: () => this.hosts.some(({ state }) => state === 'starting'),
      onAgain: () => this.#growAgain(),
      onGiveUp: (error, isLasting) => {
        this.#tellWarm(error);
        if (!this.#hasReadyHost) events.onGiveUp(error, isLasting);
      },
    });
  }

  get #hasReadyHost(): boolean {
    return this.hosts.some(({ state }) => state === 'ready');
  }

  get health(): PoolHealth {
    return this.#starts.health;
  }

  /** For messages. */
  get whyTasksWait(): string {
    if (this.#hasReadyHost) return 'all hosts are at work';
    const { reason } = this.#starts.health;
    return reason === undefined ? 'no host is ready yet' : `no host starts (${reason})`;
  }

  /** Starts that had to wait, because others had failed. */
  get restarts(): number {
    return this.#starts.restarts;
  }

  /** Of all hosts, those that have ended among them. */
  bytes(which: 'sentBytes' | 'receivedBytes'): number {
    return this.hosts.reduce((sum, host) => sum + host[which], this.#formerBytes[which]);
  }

  #load(): Load {
    const load = { idleHosts: 0, busyHosts: 0, startingHosts: 0 };
    for (const host of this.hosts) {
      if (host.state === 'starting') load.startingHosts += 1;
      else if (host.isRetiring) continue;
      else if (host.inFlight > 0 || host.isBusyElsewhere) load.busyHosts += 1;
      else load.idleHosts += 1;
    }
    const { minHosts, maxHosts, hostsAtOnce } = this.#size;
    const { minSpareHosts, maxSpareHosts } = this.#options;
    const waitingTasks = Math.max(this.#waitingTasks(), this.#wantedIdle);
    return {
      ...load,
      minHosts,
      maxHosts,
      hostsAtOnce,
      minSpareHosts,
      maxSpareHosts,
      waitingTasks,
    };
  }

  /** Whether a host has nothing to do right now. */
  get hasIdleHost(): boolean {
    return this.hosts.some((host) => host.isOpen && host.inFlight === 0 && !host.isBusyElsewhere);
  }

  /** Tasks that hosts which start now will take. */
  get comingRoom(): number {
    const starting = this.hosts.filter(({ state }) => state === 'starting').length;
    return starting * this.#options.concurrentTasksPerHost;
  }

  /** While no host is ready: the starting one with the fewest offers that takes one more. */
  get offerable(): TaskHost | undefined {
    if (this.#hasReadyHost) return undefined;
    const starting = this.hosts.filter(({ takesOffers }) => takesOffers);
    return starting.sort((a, b) => a.inFlight - b.inFlight)[0];
  }

  /** Whether others use these hosts, too. */
  get isShared(): boolean {
    return this.#shared !== undefined;
  }

  /** Whether a host works for others: nobody says when it is done. */
  get hasHostElsewhere(): boolean {
    return this.#shared !== undefined && this.hosts.some((host) => host.isBusyElsewhere);
  }

  /** Whether there will not be more hosts than there are. */
  get isComplete(): boolean {
    const ready = this.hosts.filter(({ state }) => state === 'ready').length;
    return ready >= this.#size.maxHosts;
  }

  /** Starts what the load asks for, unless a delay after a failure runs. Cheap when there is nothing to do. */
  grow(): void {
    if (this.#isClosing || this.#starts.isPausing) return;
    if (this.hosts.length - this.#condemned.size >= this.#size.maxHosts) return;
    const before = this.hosts.length;
    for (let count = hostsToStart(this.#load()); count > 0; count -= 1) {
      if (!this.#start()) break;
    }
    if (this.hosts.length > before && announcements.poolResize.hasSubscribers) {
      announcements.poolResize.publish({
        pool: this.#poolId,
        hostsBefore: before,
        hostsWanted: this.hosts.length,
      });
    }
  }

  /** Throws where no call can be taken, on a cluster. */
  check(): void {
    this.#options.remote?.check();
  }

  /** Starts hosts until `count` are idle or on their way, though nothing waits for them. */
  warm(count: number): void {
    this.#wantedIdle = count;
    this.grow();
    this.#wantedIdle = 0;
  }

  /** A call is being prepared: while no host is ready, one more may start beside that. Throws as `check`. */
  anticipate(): void {
    this.check();
    if (!this.#hasReadyHost) this.warm(this.#waitingTasks() + 1);
  }

  get maxHosts(): number {
    return this.#size.maxHosts;
  }

  /** Another size from now on: hosts above it leave when they have answered what they have. */
  resize(size: PoolSize): void {
    this.#size = size;
    const staying = this.hosts.filter(({ isRetiring }) => !isRetiring);
    staying.sort((a, b) => a.inFlight - b.inFlight);
    for (const host of staying.slice(0, Math.max(0, staying.length - size.maxHosts))) {
      this.#retire(host);
    }
    this.#growAgain();
    this.#tellWarm(undefined);
    this.#watchIdle();
  }

  /** As `grow`, also for who waits for hosts: one that was counted upon has ended, or there may be more. */
  #growAgain(): void {
    if (this.#warmWaiters.length > 0) this.warm(this.#wantedReady);
    else this.grow();
  }

  /** Lets all present hosts go; others start as the load asks. Resolves when the last has left. */
  async recycle(): Promise<void> {
    const leaving = [...this.hosts];
    for (const host of leaving) this.#retire(host);
    await whileHeld(Promise.all(leaving.map((host) => this.#whenExited(host))));
  }

  #whenExited(host: TaskHost): Promise<void> {
    if (!this.hosts.includes(host)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#leaving.set(host, [...(this.#leaving.get(host) ?? []), resolve]);
    });
  }

  /**
   * Starts hosts until `hosts` are there, and resolves when they are ready. Rejects with `HOST_START_FAILED`, or
   * as `check`.
   */
  async warmUp(hosts = Infinity): Promise<void> {
    this.check();
    if (this.#isReady(hosts)) return;
    // It waits before anything starts: a start may fail at once, and is repeated for who waits.
    const ready = new Promise<void>((resolve, reject) => {
      this.#warmWaiters.push({ hosts, resolve, reject });
    });
    this.warm(this.#wantedReady);
    await whileHeld(ready);
  }

  /** How many hosts are to be there for all that wait for them. */
  get #wantedReady(): number {
    const most = Math.max(...this.#warmWaiters.map(({ hosts }) => hosts));
    return Math.min(most, this.#size.maxHosts);
  }

  #isReady(hosts: number): boolean {
    const ready = this.hosts.filter((host) => host.state === 'ready');
    return ready.length >= Math.min(hosts, this.#size.maxHosts);
  }

  #tellWarm(error: CodedError | undefined): void {
    if (this.#warmWaiters.length === 0) return;
    for (const waiter of this.#warmWaiters.splice(0)) {
      if (error !== undefined) waiter.reject(error);
      else if (this.#isReady(waiter.hosts)) waiter.resolve();
      else this.#warmWaiters.push(waiter);
    }
    this.#watchIdle();
  }

  #start(): boolean {
    const options = this.#options;
    const place = freePlace([...this.#places.values()]);
    try {
      const host = Host.start<Task>(
        {
          ...options,
          ...optionsAt(options, place),
          kind: options.host,
          channel: this.#channel,
          setup: this.#setup,
          hasTeardown: options.teardown !== undefined,
          nested: this.#nested,
          shared: this.#shared?.isOver === true ? undefined : this.#shared,
          remote: options.remote,
          concurrentTasks: options.concurrentTasksPerHost,
          pinnedCores: this.#nextCores(),
        },
        this.#hostEvents,
      );
      this.hosts.push(host);
      this.#places.set(host, place);
      this.counts.startedHosts += 1;
      announcements.hostStart.publish({ host: host.id, kind: host.kind, pid: host.pid });
      return true;
    } catch (error) {
      this.#starts.failed(failureOfStart(error), undefined);
      return false;
    }
  }

  #nextCores(): number[] {
    if (this.#options.affinity === 'none') return [];
    const staying = this.hosts.filter((host) => !host.isRetiring);
    return coresToPin(
      staying.flatMap((host) => host.pinnedCores),
      allowedCores(),
    );
  }

  readonly #hostEvents: HostEvents<Task> = {
    onReady: (host) => {
      if (announcements.hostReady.hasSubscribers) {
        const startedInMs = nowMs() - host.startedAtMs;
        announcements.hostReady.publish({
          host: host.id,
          kind: host.kind,
          pid: host.pid,
          startedInMs,
        });
      }
      this.#starts.ready();
      this.#events.onReady(host);
      this.released(host); // it may be retiring since it started
      if (host.inFlight === 0) this.#watchIdle();
      this.#tellWarm(undefined);
    },
    onResult: (host, task, ranMs, result) => {
      if (host.tasksDone === 1) this.#starts.succeeded();
      this.#events.onResult(host, task, ranMs, result);
      this.#afterAnswer(host);
    },
    onError: (host, task, ranMs, error) => {
      if (host.tasksDone === 1) this.#starts.succeeded();
      this.#events.onError(host, task, ranMs, error);
      this.#afterAnswer(host);
    },
    onStream: (host, task, slot) => {
      if (task.state === 'settled')
        host.grant(slot, 0); // given up before it began
      else this.#events.onStream(host, task, slot);
    },
    onReport: (host, task, value, taken) => this.#events.onReport(host, task, value, taken),
    onItem: (host, task, item) => this.#events.onItem(host, task, item),
    onItemLost: (host, task, error) => {
      if (task.state !== 'settled') this.#events.onItemLost(host, task, error);
    },
    onDrain: (host) => this.#events.onDrain(host),
    onRetire: (host) => this.#retire(host),
    onExit: (host, exit, unanswered, failure) => this.#exited(host, exit, unanswered, failure),
  };

  #afterAnswer(host: TaskHost): void {
    if (host.tasksDone >= this.#options.maxTasksPerHost) this.#retire(host);
    if (host.isRetiring && host.inFlight === 0) host.close();
    else if (host.inFlight === 0) this.#watchIdle();
  }

  /** An offer to it was withdrawn. */
  released(host: TaskHost): void {
    if (host.isRetiring && host.inFlight === 0) host.close();
  }

  /** It will be killed, and others may take its place now. */
  condemn(host: TaskHost): void {
    host.isRetiring = true;
    this.#condemned.add(host);
    this.grow();
  }

  /** It gets no more tasks, and leaves when it has answered those it has. */
  #retire(host: TaskHost): void {
    host.isRetiring = true;
    if (host.inFlight === 0) host.close();
  }

  #exited(
    host: TaskHost,
    exit: HostExit,
    unanswered: Task[],
    startFailure: StartFailure | undefined,
  ): void {
    this.hosts.splice(this.hosts.indexOf(host), 1);
    this.#places.delete(host);
    this.#condemned.delete(host);
    this.counts.exitedHosts += 1;
    this.#formerBytes.sentBytes += host.sentBytes;
    this.#formerBytes.receivedBytes += host.receivedBytes;
    const isExpected = this.#isClosing || host.isRetiring || host.wasEnded;
    if (!isExpected) this.counts.lostHosts += 1;
    if (announcements.hostExit.hasSubscribers) {
      const { exitCode, signal, error } = exit;
      announcements.hostExit.publish({
        host: host.id,
        kind: host.kind,
        pid: host.pid,
        exitCode,
        signal,
        isExpected,
        error,
      });
    }
    const hadBegun = this.#events.onExit(host, exit, unanswered);
    const isTold = hadBegun || startFailure !== undefined;
    if ((!isExpected || exit.isUncaught === true) && !isTold) this.#events.onLost(host, exit);
    for (const tell of this.#leaving.get(host) ?? []) tell();
    this.#leaving.delete(host);
    if (this.hosts.length === 0) for (const tell of this.#exitWaiters.splice(0)) tell();
    if (!this.#isClosing) {
      const failure = hadBegun ? undefined : (startFailure ?? idleEnd(host, exit));
      // Before anything asks for another host: its start has to wait.
      if (failure !== undefined) this.#starts.failed(failure, host);
      else if (!host.leavesWithProgram) this.#growAgain();
    }
    this.#events.onExited();
  }

  #watchIdle(): void {
    if (this.#idleTimer !== undefined || this.hosts.length <= this.#size.minHosts) return;
    if (this.#isClosing || this.#warmWaiters.length > 0) return; // warm() waits for all to be ready at a time
    const idle = new Map(this.#idleHosts().map((host) => [host, host.lastUsed]));
    this.#idleTimer = startTimer(this.#options.idleTimeMs, () => {
      this.#idleTimer = undefined;
      this.#shrink(idle);
    });
    this.#idleTimer?.unref();
  }

  #idleHosts(): TaskHost[] {
    return this.hosts.filter((host) => host.inFlight === 0 && host.state === 'ready');
  }

  /**
   * Lets one host go that has been idle all the time, the one that was used longest ago; looks again while there
   * are more. All of them in a context of node:vm: each file of a test runner leaves a pool behind. `before`: those
   * that were idle when that time began, and when they had been used. No clock is read for each task.
   */
  #shrink(before: ReadonlyMap<TaskHost, number>): void {
    if (this.#isClosing || hostsToStop(this.#load()) === 0) return;
    const idle = this.#idleHosts().filter((host) => before.get(host) === host.lastUsed);
    idle.sort((a, b) => a.lastUsed - b.lastUsed);
    const most = isMainRealm ? 1 : hostsToStop(this.#load());
    for (const host of idle.slice(0, most)) this.#retire(host);
    this.#watchIdle();
  }

  /** Starts nothing more and asks every host to leave; resolves when the last has left. */
  async stop(how: 'close' | 'kill'): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#idleTimer);
    this.#tellWarm(new CodedError('POOL_CLOSED', 'the pool was closed while its hosts started'));
    this.#starts.stop();
    for (const host of [...this.hosts]) {
      if (how === 'kill') host.kill();
      else if (host.state === 'starting') host.terminate();
      else host.close();
    }
    if (this.hosts.length === 0) return;
    const timer = startTimer(this.#options.graceMs, () => {
      for (const host of this.hosts) host.kill();
    });
    const exited = new Promise<void>((resolve) => {
      this.#exitWaiters.push(resolve);
    });
    await whileHeld(exited);
    clearTimeout(timer);
  }
}
