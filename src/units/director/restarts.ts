// Restarts of lost instances. Innocent ones start at once on the loops that replace theirs, or elsewhere when these
// come late (orphans.ts). An instance whose unit ended its process or thread, or that cannot be started again, waits
// a growing delay, and is given up after too many restarts. Blame: a process that a signal from outside ended
// accuses nobody; a loop that failed accuses the units on it alone; several suspects are separated (isolation.ts),
// until one is alone in a process that it ends. docs/design/loops.md has the rules.
// Long (over 400 lines), because a lost instance changes its place in one set of tables.

import {
  announcements,
  messageOf,
  RestartIntensity,
  setImmediate,
  setTimeout,
} from '../../lib/index.js';
import type { LostProcess } from '../../serve/index.js';
import { unitFailed, unitStack } from '../errors.js';
import type { DirectedDeployment, Placed } from './deployment.js';
import { Isolation } from './isolation.js';
import type { LoopEntry } from './loop-entry.js';
import { announceLosses, type Failure } from './losses.js';
import { Orphans } from './orphans.js';
import { type ProcessEnd, ProcessEnds } from './process-ends.js';

/** Deployments whose lost instances start again together (group.ts). */
export interface RestartGroup {
  /** Counts failures of all its instances. */
  readonly intensity: RestartIntensity;
  /** Starts lost instances again, with others, after a delay in ms. */
  readonly lost: (placed: readonly Placed[], delayMs: number) => void;
  /** Gives the whole group up. */
  readonly giveUp: (placed: readonly Placed[], why: string) => void;
  /** The start of an instance has ended, with or without success. */
  readonly changed: () => void;
}

export interface RestartParts {
  readonly capacity: { readonly loops: number; readonly grow: () => Promise<void> };
  readonly loops: () => readonly LoopEntry[];
  readonly deployments: () => readonly DirectedDeployment[];
  /** Returns the deployment; `undefined`: the instance was scaled down or undeployed. */
  readonly ownerOf: (placed: Placed) => DirectedDeployment | undefined;
  /** Returns the group whose instances restart with it. */
  readonly groupOf: (placed: Placed) => RestartGroup | undefined;
  /** Chooses a loop. Throws `UNIT_START_FAILED`. */
  readonly place: (deployment: DirectedDeployment) => LoopEntry | undefined;
  /** Rejects with `UNIT_START_FAILED`. */
  readonly start: (deployment: DirectedDeployment, placed: Placed) => Promise<void>;
}

/** Instances that were on a loop that has ended. */
export interface Left {
  /** Instances whose state is `lost`. */
  readonly lost: readonly Placed[];
  /** Lost ones and others, which started, moved or stopped: one of all has ended the loop. */
  readonly all: readonly Placed[];
}

/** Instances whose loss is one failure. */
interface Round {
  readonly group: RestartGroup | undefined;
  readonly some: readonly Placed[];
  readonly intensity: RestartIntensity;
}

export class Restarts {
  readonly #parts: RestartParts;
  readonly #isolation = new Isolation();
  readonly #ends = new ProcessEnds();
  readonly #intensities = new WeakMap<Placed, RestartIntensity>();
  /** Instances on the loops of processes that have ended, by pid, by loop. */
  readonly #unjudged = new Map<number, Left[]>();
  /** The end of the last loop that ended with an instance on it. */
  readonly #loopEnds = new WeakMap<
    Placed,
    { readonly loop: number; readonly end: Promise<ProcessEnd> }
  >();
  readonly #orphans = new Orphans((late) => this.#startAnywhere(late));
  /** Instances that may have ended their loop: they wait for the next one, and start on the emptiest. */
  readonly #suspects = new WeakSet<Placed>();
  /** Isolated instances that wait for a process of their own. */
  #waiting: Placed[] = [];
  /** Isolated deployments for which a process is being started. */
  readonly #growing = new Set<number>();
  readonly #pending = new Map<Placed, Promise<void>>();

  constructor(parts: RestartParts) {
    this.#parts = parts;
  }

  /** Returns the loops that a deployment may use among these. */
  allowed(id: number, loops: readonly LoopEntry[]): readonly LoopEntry[] {
    const own = this.#isolation.processOf(id);
    const alone = loops.filter(({ pid }) => pid === own);
    return alone.length > 0 ? alone : loops.filter(({ pid }) => !this.#isolation.isTaken(pid));
  }

  /** A deployment has ended: its process is for all again. */
  forget(id: number): void {
    this.#isolation.delete(id);
    this.#waiting = this.#waiting.filter(({ deployment }) => deployment !== id);
    this.#startAnywhere(this.#orphans.takeLate()); // there may be a loop for them now
  }

  processLost(lost: LostProcess): void {
    this.#ends.note(lost);
  }

  /** The loop has ended. */
  loopLost({ loop, pid, index, isLeaving }: LoopEntry, left: Left): void {
    const { lost, all } = left;
    if (isLeaving) {
      this.#report(lost, 'its process has ended in order');
      void this.settled(lost).then(() => this.again(lost));
    } else if (all.length === 0) this.#ends.drop(pid, index);
    else {
      const end = this.#ends.of(pid, index);
      for (const each of all) this.#loopEnds.set(each, { loop, end });
      void this.#judge(pid, end, left);
    }
  }

  /** Returns how this loop, on which the instance was, has ended; `undefined`: in order, or it has not. */
  async endOf(placed: Placed, loop: number): Promise<ProcessEnd | undefined> {
    const last = this.#loopEnds.get(placed);
    return last?.loop === loop ? await last.end : undefined;
  }

  async #judge(pid: number, ended: Promise<ProcessEnd>, left: Left): Promise<void> {
    const end = await ended;
    if (end.what === 'loop') return await this.#decide([left], end);
    const known = this.#unjudged.get(pid);
    if (known !== undefined) return void known.push(left);
    const all = [left];
    this.#unjudged.set(pid, all);
    await new Promise<void>((resolve) => setImmediate(resolve)); // by then all its loops are lost
    this.#unjudged.delete(pid);
    await this.#decide(all, end);
  }

  async #decide(all: readonly Left[], end: ProcessEnd): Promise<void> {
    const lost = all.flatMap((each) => each.lost);
    this.#report(lost, end.why);
    await this.settled(lost);
    const there = all.flatMap((each) => each.all);
    const suspects = [...new Set(there.map(({ deployment }) => deployment))];
    const groups = all.map((each) => each.lost.filter((placed) => this.#isLost(placed)));
    for (const each of groups.flat()) {
      if (end.isFromOutside) this.#suspects.delete(each);
      else this.#suspects.add(each);
    }
    if (!end.isFromOutside) this.#accuse(groups, suspects, end);
    else for (const group of groups) this.again(group);
  }

  #report(lost: readonly Placed[], why: string): void {
    for (const each of lost) this.#parts.ownerOf(each)?.ends.lost(each, why);
  }

  /** Resolves when no start of these is under way. Never rejects. */
  async settled(lost: readonly Placed[]): Promise<void> {
    await Promise.all(lost.map((each) => this.#pending.get(each)));
  }

  #isLost(placed: Placed): boolean {
    return placed.state === 'lost' && this.#parts.ownerOf(placed) !== undefined;
  }

  #accuse(
    groups: readonly (readonly Placed[])[],
    suspects: readonly number[],
    { what, why }: ProcessEnd,
  ): void {
    const lost = groups.flat();
    if (lost.length === 0) return;
    const there = this.#parts.deployments().filter(({ id }) => suspects.includes(id));
    const [only] = there;
    if (only !== undefined && suspects.length === 1) {
      this.failed(lost, { why: `${only.name} ended its ${what} (${why})` }, only.id);
      return;
    }
    const ids = there.map(({ id }) => id); // others have ended
    const isolated = this.#isolation.noteShared(ids, performance.now());
    if (isolated !== undefined) this.#isolate(isolated);
    for (const group of groups) this.again(group);
  }

  /**
   * Counts a failure of these instances: they start again after a delay, or are given up. `alone`: the
   * deployment that ended a process in which it was the only suspect.
   */
  failed(lost: readonly Placed[], failure: Failure, alone?: number): void {
    const { why } = failure;
    this.#orphans.reset(lost);
    const nowMs = performance.now();
    const rounds = this.#rounds(lost).map((round) => {
      const { group, some, intensity } = round;
      return { group, some, delayMs: intensity.failed(nowMs), failures: intensity.failures };
    });
    const failures = Math.max(0, ...rounds.map((round) => round.failures));
    if (alone !== undefined && this.#isolation.noteAlone(alone, failures)) this.#isolate(alone);
    announceLosses(rounds, failure, this.#parts.ownerOf);
    const givenUp: Placed[] = [];
    for (const { group, some, delayMs } of rounds) {
      if (group !== undefined && delayMs !== undefined) group.lost(some, delayMs);
      else if (group !== undefined) group.giveUp(some, why);
      else if (delayMs === undefined) givenUp.push(...some);
      else setTimeout(() => this.begin(some), delayMs).unref();
    }
    this.#giveUp(givenUp, why);
  }

  /** Returns what counts as one failure: each instance by itself, or all of a group together. */
  #rounds(lost: readonly Placed[]): Round[] {
    return [...this.#byGroup(lost)].flatMap(([group, some]): Round[] => {
      if (group !== undefined) return [{ group, some, intensity: group.intensity }];
      return some.map((each) => ({ group, some: [each], intensity: this.#intensityOf(each) }));
    });
  }

  #byGroup(lost: readonly Placed[]): Map<RestartGroup | undefined, Placed[]> {
    const groups = new Map<RestartGroup | undefined, Placed[]>();
    for (const each of lost) {
      const group = this.#parts.groupOf(each);
      groups.set(group, [...(groups.get(group) ?? []), each]);
    }
    return groups;
  }

  #intensityOf(placed: Placed): RestartIntensity {
    const known = this.#intensities.get(placed);
    if (known !== undefined) return known;
    const made = new RestartIntensity(this.#parts.ownerOf(placed)?.options.restarts);
    this.#intensities.set(placed, made);
    return made;
  }

  #giveUp(placed: readonly Placed[], why: string): void {
    const [first] = placed;
    const deployment = first && this.#parts.ownerOf(first);
    if (deployment === undefined) return;
    const instances = placed.map(({ instance }) => instance);
    const error = unitFailed(deployment.name, instances, why);
    deployment.fail(placed, error);
    if (deployment.hasFailed) this.forget(deployment.id);
    const { name: unit, id } = deployment;
    announcements.unitFailed.publish({ unit, deployment: id, instances, error });
  }

  /** Gives the unit a process of its own, in which all its lost instances start from now on. */
  #isolate(id: number): void {
    const others = this.#parts.deployments().filter((each) => each.id !== id && !each.hasFailed);
    if (others.length === 0) return; // it is alone already
    this.#isolation.add(id);
    this.#assign(); // at once, or when the lost process is replaced: it may be empty then
  }

  #growFor(id: number): void {
    const grown = (hasProcess: boolean): void => {
      this.#growing.delete(id);
      if (hasProcess) return void this.#assign();
      if (!this.#isComplete()) return; // it gets the next process that comes
      const waiting = this.#waiting.filter(({ deployment }) => deployment === id);
      this.forget(id); // it stays among the others
      this.begin(waiting);
    };
    this.#growing.add(id);
    this.#parts.capacity.grow().then(
      () => grown(true),
      () => grown(false),
    );
  }

  /** Gives a new process to an isolated unit that has waited too long, where the others have one. */
  #assignLate(pid: number): void {
    const isForOthers = (each: LoopEntry): boolean =>
      each.pid !== pid && !this.#isolation.isTaken(each.pid);
    if (this.#isolation.isTaken(pid) || !this.#parts.loops().some(isForOthers)) return;
    const late = this.#isolation.homeless(this.#pids()).find((id) => this.#isLate(id));
    if (late !== undefined) this.#isolation.setProcess(late, pid);
  }

  /** Gives empty processes to isolated units that have none. */
  #assign(): void {
    const loops = this.#parts.loops();
    const pids = this.#pids();
    const used = new Set(
      this.#parts.deployments().flatMap(({ placed }) => placed.map(({ pid }) => pid)),
    );
    const isComplete = loops.length >= this.#parts.capacity.loops;
    for (const id of this.#isolation.homeless(pids)) {
      // While processes are missing, one that is empty may have to replace others.
      const isDue = isComplete || this.#isLate(id);
      if (this.#growing.has(id) || !isDue) continue;
      const empty = [...pids].find((pid) => !used.has(pid) && !this.#isolation.isTaken(pid));
      if (empty === undefined) this.#growFor(id);
      else this.#isolation.setProcess(id, empty);
    }
    const ready = this.#waiting.filter(({ deployment }) => this.#hasProcess(deployment));
    this.#waiting = this.#waiting.filter((each) => !ready.includes(each));
    this.begin(ready);
  }

  /** True: no loop is missing. */
  #isComplete(): boolean {
    return this.#parts.loops().length >= this.#parts.capacity.loops;
  }

  /** True: an instance of this isolated unit has waited too long for a process. */
  #isLate(id: number): boolean {
    return this.#waiting.some((each) => each.deployment === id && this.#orphans.isLate(each));
  }

  /** Returns the processes with loops in service. */
  #pids(): Set<number> {
    return new Set(this.#parts.loops().map(({ pid }) => pid));
  }

  #hasProcess(id: number): boolean {
    const own = this.#isolation.processOf(id);
    return this.#parts.loops().some(({ pid }) => pid === own);
  }

  /** Takes instances of loops that have ended, unless its process belongs to an isolated unit. */
  loopArrived(entry: LoopEntry): void {
    this.#assignLate(entry.pid);
    // One process takes all where another is to stay empty for an isolated unit.
    const isOneWanted = this.#isolation.homeless(this.#pids()).length > 0;
    const isForAll = !this.#isolation.isTaken(entry.pid);
    const orphans = isForAll ? this.#orphans.take(isOneWanted ? Infinity : 1) : [];
    for (const each of orphans) if (!this.#startAlone(each)) this.#start(each, () => entry);
    this.#startAnywhere(this.#orphans.takeLate());
    this.#assign();
    const isComplete = this.#isComplete();
    if (isComplete) this.begin(this.#orphans.take(Infinity)); // of each loop there may be several groups
  }

  /** Starts lost instances again; those of groups as their strategies say. */
  again(lost: readonly Placed[]): void {
    for (const [group, some] of this.#byGroup(lost)) {
      if (group === undefined) this.begin(some);
      else group.lost(some, 0);
    }
  }

  /** True: its start is under way. */
  isPending(placed: Placed): boolean {
    return this.#pending.has(placed);
  }

  /** Resolves when no start of these is under way; those that have not begun never begin. */
  async withdraw(placed: readonly Placed[]): Promise<void> {
    const isOther = (each: Placed): boolean => !placed.includes(each);
    this.#waiting = this.#waiting.filter(isOther);
    this.#orphans.withdraw(placed);
    this.#orphans.reset(placed);
    await this.settled(placed);
  }

  /** Starts lost instances on loops that replace theirs; on others, when these do not come in time. */
  begin(lost: readonly Placed[]): void {
    const others = lost
      .filter((each) => this.#isLost(each))
      .filter((each) => !this.#startAlone(each));
    if (others.length === 0) return;
    const isComplete = this.#isComplete();
    const isDue = (each: Placed): boolean => isComplete || this.#orphans.isLate(each);
    this.#startAnywhere(others.filter(isDue));
    const waiting = others.filter((each) => !isDue(each));
    this.#addOrphans(waiting);
  }

  /** Returns false for one that may share its process. */
  #startAlone(placed: Placed): boolean {
    const { deployment } = placed;
    if (!this.#isolation.has(deployment)) return false;
    if (this.#hasProcess(deployment)) this.#start(placed, this.#parts.place);
    else {
      if (!this.#waiting.includes(placed)) this.#waiting.push(placed);
      this.#orphans.limit(placed, () => this.#assign()); // then although processes are missing
      this.#assign();
    }
    return true;
  }

  /** Starts these on loops that are there; those of isolated units in their process. */
  #startAnywhere(lost: readonly Placed[]): void {
    for (const each of lost.filter((placed) => this.#isLost(placed))) {
      const isSuspect = this.#suspects.has(each) && this.#isFree(each);
      const choose = isSuspect ? this.#mostlyEmpty : this.#parts.place;
      if (!this.#startAlone(each)) this.#start(each, choose);
    }
  }

  /** True: it may use any process. */
  #isFree(placed: Placed): boolean {
    return this.#parts.ownerOf(placed)?.options.processes === Infinity;
  }

  /** Chooses the loop on which the fewest instances run, the newest of several, for one that may end it. */
  readonly #mostlyEmpty = ({ id }: DirectedDeployment): LoopEntry | undefined => {
    const placed = this.#parts.deployments().flatMap((each) => each.placed);
    const running = ({ loop }: LoopEntry): number =>
      placed.filter((each) => each.loop === loop && each.state === 'running').length;
    const [first, ...others] = this.allowed(id, this.#parts.loops());
    return others.reduce((a, b) => (a && running(a) < running(b) ? a : b), first);
  };

  #addOrphans(placed: readonly Placed[]): void {
    if (placed.length > 0) this.#orphans.add(placed, (each) => !this.#suspects.has(each));
  }

  #start(placed: Placed, choose: (deployment: DirectedDeployment) => LoopEntry | undefined): void {
    if (!this.#isLost(placed)) return; // it ends, or its start is under way
    const starting = this.#startOn(placed, choose).finally(() => {
      if (this.#pending.get(placed) === starting) this.#pending.delete(placed);
      this.#parts.groupOf(placed)?.changed();
    });
    this.#pending.set(placed, starting);
  }

  /** Never rejects. */
  async #startOn(
    placed: Placed,
    choose: (deployment: DirectedDeployment) => LoopEntry | undefined,
  ): Promise<void> {
    const deployment = this.#parts.ownerOf(placed);
    if (deployment === undefined || placed.state !== 'lost') return;
    const entry = loopOrNone(() => choose(deployment));
    if (entry === undefined) {
      this.#addOrphans([placed]);
      return;
    }
    const { loop, pid } = entry;
    Object.assign(placed, { loop, pid, state: 'starting', isRestarting: true });
    try {
      await this.#parts.start(deployment, placed);
      this.#orphans.reset([placed]);
    } catch (error) {
      await new Promise<void>((resolve) => setImmediate(resolve)); // by then the loss of a loop has been reported
      const isLoopLost = placed.loop === undefined;
      Object.assign(placed, { loop: undefined, pid: undefined, state: 'lost' });
      if (!isLoopLost && this.#isLost(placed)) {
        this.failed([placed], { why: messageOf(error), stack: unitStack(error) });
      }
    } finally {
      placed.isRestarting = false;
    }
  }
}

/** Returns `undefined` when no loop is there. */
function loopOrNone(choose: () => LoopEntry | undefined): LoopEntry | undefined {
  try {
    return choose();
  } catch {
    return undefined;
  }
}
