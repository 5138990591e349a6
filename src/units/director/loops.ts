// Event loops with units on them, on the side of the program that starts them: processes × loops under the
// supervisor of servers, a director for deployments, and an end of the bus, as every loop has one.

import { fileURLToPath } from 'node:url';
import { addSource } from '../../agent/index.js';
import { type Bus, BusLink, createCopy, EventBus, Scope } from '../../bus/index.js';
import {
  type Cluster,
  type ClusterOptions,
  type FilledClusterOptions,
  fillClusterOptions,
  joinCluster,
} from '../../cluster/index.js';
import { CodedError } from '../../errors.js';
import { announcements, ownOptions } from '../../lib/index.js';
import {
  type BoundAddress,
  fillServeOptions,
  type LoopStatus,
  Mesh,
  type ServedApp,
  type ServeOptions,
  serveProgram,
  supervisorMember,
} from '../../serve/index.js';
import { answer } from '../ask.js';
import { BlockedPeers } from '../blocked-peers.js';
import { fillDeployAll, fillDeployOptions, sourceOf } from '../options.js';
import { directorAddress, parseBlocked, parseToDirector } from '../protocol.js';
import type {
  DeployAllOptions,
  Deployment,
  DeploymentGroup,
  DeployOptions,
  GroupMember,
  UnitLike,
} from '../types.js';
import { Director } from './director.js';
import { redeployAll } from './redeploy.js';

/** A subset of the options of `serve`. */
export interface LoopsOptions {
  /** Default: two where two cores are granted, and enough that each has at most four loops. */
  readonly processes?: number | undefined;
  /** Event loops in each process. Default: as many as there are cores for each process. */
  readonly loops?: number | undefined;
  /** A process that takes more memory is replaced, in bytes. Default: never. */
  readonly maxRssBytes?: number | undefined;
  /** Time limit of the loops' start, in ms. Default: 30,000. */
  readonly startTimeoutMs?: number | undefined;
  /** A loop's process is replaced after so long in one callback, in ms. Default: 15,000. */
  readonly blockedTimeoutMs?: number | undefined;
  /** Time limit for units to end when their process ends, in ms. Default: 30,000. */
  readonly drainTimeoutMs?: number | undefined;
  /** Answers `manycore status` of the same user. Default: false, and true under `manycore run`. */
  readonly control?: boolean | undefined;
  /** Connects the bus to other programs, for this one and its loops, when they start. Default: to none. */
  readonly cluster?: ClusterOptions | undefined;
}

/** A loop that can have units. */
export interface LoopNumber {
  readonly loop: number;
  readonly pid: number;
}

const names = new Set([
  'processes',
  'loops',
  'maxRssBytes',
  'startTimeoutMs',
  'blockedTimeoutMs',
  'drainTimeoutMs',
  'control',
  'cluster',
]);

/** Processes are always replaced: restarts of units have limits of their own. */
const processRestarts = { firstDelayMs: 50, maxDelayMs: 500, maxFailures: Infinity };

function loopsClosed(): CodedError {
  return new CodedError('LOOPS_CLOSED', 'the loops are closed: start others');
}

export class Loops implements AsyncDisposable {
  /** This program's end of the bus. */
  readonly bus: Bus;
  readonly #options: ServeOptions;
  readonly #clusterOptions: FilledClusterOptions | undefined;
  readonly #bus: EventBus;
  readonly #scope: Scope;
  readonly #director: Director;
  readonly #links = new Map<number, BusLink>();
  readonly #unregister = addSource('loops', this, (loops) => loops.#stats());
  readonly #blocked: BlockedPeers;
  readonly #blockedTimeoutMs: number;
  /** True for the loops of `deploy`. */
  #endsWhenIdle = false;
  #cluster: Promise<Cluster> | undefined;
  readonly #copy = createCopy();
  #joined: Cluster | undefined;
  #started: Promise<ServedApp> | undefined;
  #served: ServedApp | undefined;
  #closed: Promise<void> | undefined;
  /** Processes when none is missing. */
  #processes: number;
  #growth: Promise<void> = Promise.resolve();

  /** Starts nothing yet. Throws `OPTION_INVALID`. */
  constructor(options: LoopsOptions = {}) {
    const { cluster, ...others } = ownOptions('the options of Loops', options, names);
    this.#clusterOptions = cluster === undefined ? cluster : fillClusterOptions(cluster);
    this.#options = { ...others, plan: 'worker' };
    const { processes, loops, blockedTimeoutMs } = fillServeOptions(this.#options);
    this.#processes = processes.max;
    this.#blockedTimeoutMs = blockedTimeoutMs;
    this.#bus = new EventBus({ copy: this.#copy });
    this.#scope = new Scope(this.#bus);
    this.#blocked = new BlockedPeers(this.#bus, supervisorMember, this.#links);
    this.bus = this.#scope.bus;
    const ofProcess = loops.max;
    const countLoops = (): number => this.#processes * ofProcess;
    const capacity = {
      get loops() {
        return countLoops();
      },
      grow: () => this.#grow(),
    };
    this.#director = new Director(this.#bus, capacity, () => {
      if (!this.#endsWhenIdle) return;
      this.#stop();
      this.#processes = processes.max;
    });
    answer(this.#bus, directorAddress, (message) =>
      this.#director.handle(parseToDirector(message)),
    );
  }

  /** The loops of `deploy`: they end when nothing is deployed any more. @internal */
  static ofProgram(): Loops {
    return openLoops().#endWhenIdle();
  }

  #endWhenIdle(): this {
    this.#endsWhenIdle = true;
    return this;
  }

  /**
   * Connects the bus to other programs, for this one and for the loops that it starts from now on; the second
   * call resolves with the same. Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_UNREACHABLE`,
   * `CLUSTER_REFUSED`, `RUNTIME_FOLDER_REFUSED`, `OPTION_INVALID`, `LOOPS_CLOSED`.
   */
  async join(options: ClusterOptions): Promise<Cluster> {
    const filled = fillClusterOptions(options);
    if (this.#started !== undefined) {
      const message = 'these loops run already: join the cluster before the first deployment';
      throw new CodedError('OPTION_INVALID', message);
    }
    return await this.#join(filled);
  }

  /** The program may join another cluster; the loops have left with it. */
  #left(): void {
    this.#cluster = undefined;
    this.#joined = undefined;
    this.#director.leaveCluster();
  }

  /** Set once it has joined. */
  get cluster(): Cluster | undefined {
    return this.#joined;
  }

  #join(options: FilledClusterOptions): Promise<Cluster> {
    if (this.#closed !== undefined) return Promise.reject(loopsClosed());
    this.#cluster ??= joinCluster(this.#bus, options).then(
      (cluster) => {
        this.#director.cluster = cluster.ticket;
        this.#joined = cluster;
        const left = (): void => this.#left();
        cluster.closed.then(left, left);
        return cluster;
      },
      (error: unknown) => {
        this.#cluster = undefined; // the next call may succeed
        throw error;
      },
    );
    return this.#cluster;
  }

  /** Starts one process more. Rejects as `ServedApp.scale`. */
  #grow(): Promise<void> {
    const grown = this.#growth.then(async () => {
      const served = await this.#running();
      await served.scale(this.#processes + 1);
      if (served === (await this.#started)) this.#processes += 1;
    });
    this.#growth = grown.catch(() => {});
    return grown;
  }

  /** Ends the loops. The next deployment starts them again; the bus stays. */
  #stop(): void {
    const started = this.#started;
    this.#started = undefined;
    void started?.then((served) => served.close()).catch(() => {}); // the caller of the start has the error
  }

  /**
   * Resolves when all loops are ready; the first call starts them, and so does `deploy`. Rejects with
   * `SERVE_START_FAILED`, `SERVE_CONTROL_FAILED`, `NATIVE_MISSING`, `LOOPS_CLOSED`, and as `join`.
   */
  async start(): Promise<void> {
    await this.#running();
  }

  #running(): Promise<ServedApp> {
    if (this.#closed !== undefined) return Promise.reject(loopsClosed());
    this.#started ??= this.#start().catch((error: unknown) => {
      this.#started = undefined; // the next call may succeed
      throw error;
    });
    return this.#started;
  }

  readonly #announceBlocked = (message: unknown): void => {
    const loop = this.#director.announceBlocked(parseBlocked(message));
    if (loop !== undefined) this.#blocked.announce(loop, this.#blockedTimeoutMs);
  };

  /** A stopped process has no turn either, and no unit is to blame. */
  #announceStopped(pid: number | undefined): void {
    for (const each of this.#director.loops) {
      if (each.pid === pid) this.#blocked.announce(each.loop, this.#blockedTimeoutMs);
    }
  }

  async #start(): Promise<ServedApp> {
    if (this.#clusterOptions !== undefined) await this.#join(this.#clusterOptions);
    announcements.serverBlocked.unsubscribe(this.#announceBlocked);
    announcements.serverBlocked.subscribe(this.#announceBlocked);
    const mesh = new Mesh((id, end) => {
      const link = new BusLink(this.#bus, end);
      this.#links.set(id, link);
      link.ref(); // as in the loops: an end without waiting requests would sleep at once, and wake late
      void link.closed.then(() => {
        this.#links.delete(id);
        this.#director.lost(id);
      });
    });
    const entry = fileURLToPath(new URL('../loop/units-entry.js', import.meta.url));
    const title = process.argv[1] ?? 'manycore';
    this.#served = await serveProgram(entry, fillServeOptions(this.#options), {
      mesh,
      title,
      restarts: processRestarts,
      onLost: (lost) => this.#director.processLost(lost),
      onStopped: (pid) => this.#announceStopped(pid),
      reloadCode: () => this.redeploy(),
    });
    return this.#served;
  }

  /**
   * Starts instances of a unit, spread evenly over the loops; resolves when all run. When one cannot start
   * none stays. Rejects with `UNIT_INVALID`, `UNIT_START_FAILED`, `OPTION_INVALID`, `TRANSFER_…` for a unit
   * or a configuration that cannot travel, and as `start`.
   */
  async deploy<Config = unknown>(
    unit: UnitLike<Config>,
    options?: DeployOptions<Config>,
  ): Promise<Deployment> {
    fillDeployOptions(sourceOf(unit), options); // throws before anything starts
    // The configuration of the call, whatever the caller makes of it while the loops start, or later.
    const given = options && { ...options, config: this.#copy(options.config) };
    await this.#running();
    return await this.#director.deploy(unit, given, undefined);
  }

  /**
   * Redeploys all units that were deployed as files, one after the other. Rejects with the first error of
   * `Deployment.redeploy`, when the others are done.
   */
  async redeploy(): Promise<void> {
    await redeployAll(this.deployments);
  }

  /**
   * Deploys units in order, as `deploy`; from then on they restart together, by a strategy. When one cannot start
   * those before it are undeployed. Rejects as `deploy`, with `UNIT_FAILED` when units fail meanwhile, and with
   * `UNIT_UNDEPLOYED` when the loops close meanwhile.
   */
  async deployAll(
    units: readonly GroupMember[],
    options?: DeployAllOptions,
  ): Promise<DeploymentGroup> {
    fillDeployAll(units, options); // throws before anything starts
    const given = units.map((each) => ({ ...each, config: this.#copy(each.config) }));
    await this.#running();
    return await this.#director.deployAll(given, options, undefined);
  }

  /** All deployments, children of units among them. */
  get deployments(): readonly Deployment[] {
    return this.#director.deployments;
  }

  /** The running loops, with the numbers that `Deployment.move` takes and `status()` returns. */
  get loops(): readonly LoopNumber[] {
    return this.#director.loops.map(({ loop, pid }) => ({ loop, pid }));
  }

  #stats(): object {
    const deployments = this.deployments.map(({ id, name }) => ({ id, name }));
    return { loops: this.#served?.status() ?? [], deployments };
  }

  /** Returns a row for each loop; none before the start. */
  async status(): Promise<readonly LoopStatus[]> {
    return (await this.#started)?.status() ?? [];
  }

  /** Returns the addresses where servers of units listen. */
  async addresses(): Promise<readonly BoundAddress[]> {
    return (await this.#started)?.addresses ?? [];
  }

  /** Ends the processes at once, whatever they do. */
  kill(): void {
    const pids = new Set(this.#served?.status().map(({ pid }) => pid));
    for (const pid of pids) if (pid !== undefined) process.kill(pid, 'SIGKILL');
  }

  /** Resolves after `close()`. Lost processes are always replaced. */
  async ended(): Promise<void> {
    await (await this.#running()).closed;
  }

  /** Undeploys everything, and ends the loops. Rejects at the end with `UNIT_STOP_FAILED`, as `undeploy`. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#unregister();
    announcements.serverBlocked.unsubscribe(this.#announceBlocked);
    const served = await this.#started?.catch(() => undefined);
    const stopped = await this.#director.close().catch((error: unknown) => ({ error }));
    await served?.close();
    await this.#scope.end();
    await (await this.#cluster?.catch(() => undefined))?.close();
    for (const link of this.#links.values()) link.close();
    this.#bus.close();
    if (stopped !== undefined) throw stopped.error;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Outside the class: esbuild renames one whose own body names it, and its users would see that name. */
function openLoops(): Loops {
  return new Loops();
}
