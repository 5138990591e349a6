// A program that has joined a cluster: its connection, its bus on NATS, and the list of other nodes. The
// loops of the program have connections of their own, made from the same ticket.

import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { EventBus } from '../bus/index.js';
import { CodedError } from '../errors.js';
import { integer, invalid } from '../lib/index.js';
import type {
  DataSpace,
  SharedCounter,
  SharedDataOptions,
  SharedLock,
  SharedMap,
} from '../shared-data/index.js';
import { grantedCores, type RemoteWorkers } from '../worker/index.js';
import { type ClusterNode, type NodeEvents, Nodes } from './bus/nodes.js';
import { ClusterPeer } from './bus/peer.js';
import { Signer } from './bus/signature.js';
import { clusterData, noData } from './data/cluster-data.js';
import { KvLink } from './data/kv-link.js';
import { clusterClosed, connectError, noServer } from './errors.js';
import { LocalMember } from './local/member.js';
import { connectNats } from './nats/nats.js';
import {
  type FilledClusterOptions,
  fillLendOptions,
  type LendOptions,
  serversOf,
} from './options.js';
import { checkOpen, requireSigner, type TaskOptions } from './tasks/task-options.js';
import { TaskRunner } from './tasks/task-runner.js';
import { Slots } from './workers/slots.js';
import { WorkerProvider } from './workers/worker-provider.js';
import { ClusterWorkers } from './workers/workers.js';

/** Data with which a loop joins the cluster of its program. */
export interface ClusterTicket {
  readonly options: FilledClusterOptions;
  /** Id of the program's node. */
  readonly node: string;
}

/** Member number of the program itself, among the loops of its node. */
const programMember = 0;
/** Time that incompatible nodes have for an objection before the cluster counts as joined, in ms. */
const objectionMs = 200;
const maxWorkers = 1024;

export interface ClusterEvents {
  /** A node has joined the cluster. */
  join: [ClusterNode];
  /** A node has left, or its connection has ended. */
  leave: [ClusterNode];
}

/** The bus of a loop, as the loop uses its connection to the cluster. */
export interface ClusterMember {
  /** Resolves when the connection is closed for good, with the error that closed it. */
  readonly closed: Promise<unknown>;
  /** Resolves when other programs can reach the consumers here. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** The list of nodes, as the cluster uses it. */
interface NodeList extends EventEmitter<NodeEvents> {
  readonly own: ClusterNode;
  readonly others: readonly ClusterNode[];
  leave(): void;
}

/** The parts of a cluster; `tasks` is missing on one without a server. */
interface ClusterParts {
  readonly ticket: ClusterTicket;
  readonly member: ClusterMember;
  readonly nodes: NodeList;
  readonly tasks?: TaskOptions;
}

/** Emits `join` and `leave`, each with a `ClusterNode`. */
export class Cluster extends EventEmitter<ClusterEvents> implements AsyncDisposable {
  /** @internal */
  readonly ticket: ClusterTicket;
  /**
   * Resolves after `close()`. Rejects when the connection has ended for good: with `CLUSTER_REFUSED` when a
   * node objects to this one, or when a server no longer accepts the credentials.
   */
  readonly closed: Promise<void>;
  readonly #member: ClusterMember;
  readonly #nodes: NodeList;
  readonly #tasks: TaskOptions | undefined;
  /** @internal */
  readonly data: DataSpace;
  readonly #providers = new Set<WorkerProvider>();
  #remote: RemoteWorkers | undefined;
  readonly #link: KvLink | undefined;
  #refusal: CodedError | undefined;
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor({ ticket, member, nodes, tasks }: ClusterParts) {
    super();
    this.#tasks = tasks;
    this.#link = tasks && new KvLink(tasks);
    this.data =
      this.#link === undefined ? noData : clusterData(ticket.options, Promise.resolve(this.#link));
    this.ticket = ticket;
    this.#member = member;
    this.#nodes = nodes;
    nodes.on('join', (node) => this.emit('join', node));
    nodes.on('leave', (node) => this.emit('leave', node));
    nodes.on('refused', (error) => {
      this.#refusal ??= error;
      void this.close();
    });
    this.closed = member.closed.then((error) => {
      if (this.#refusal !== undefined) throw this.#refusal;
      if (this.#closing === undefined && error !== undefined) throw codedError(ticket, error);
    });
    this.closed.catch(() => {}); // callers that need the error await it themselves
  }

  /** This program. */
  get node(): ClusterNode {
    return this.#nodes.own;
  }

  /** Other nodes that are known now, in the order in which they became known. */
  get nodes(): readonly ClusterNode[] {
    return this.#nodes.others;
  }

  /** Workers of other machines, for `new Pool({ cluster })` only. Throws `OPTION_INVALID` without NATS. */
  get workers(): unknown {
    this.#remote ??= new ClusterWorkers(this.#requireTasks('a pool gets workers of a cluster'));
    return this.#remote;
  }

  /**
   * Returns the map of this name, which all programs of the cluster share. It is stored in the bucket
   * `NAME-map-…` of NATS KV. Throws `OPTION_INVALID`, `SHARED_DATA_TOO_LARGE`, as do `lock` and `counter`.
   */
  map<Value = unknown>(name: string, options?: SharedDataOptions): SharedMap<Value> {
    return this.data.map<Value>(name, options);
  }

  /** Returns the lock of this name, in the bucket `NAME-shared-locks`. */
  lock(name: string, options?: SharedDataOptions): SharedLock {
    return this.data.lock(name, options);
  }

  /** Returns the counter of this name, in the bucket `NAME-shared-counters`. */
  counter(name: string, options?: SharedDataOptions): SharedCounter {
    return this.data.counter(name, options);
  }

  /**
   * Lends `count` workers of this machine to the pools of the cluster, until the returned provider is
   * closed or the cluster is left; running tasks then get the drain time. Default: one worker for each
   * granted core. Rejects with `CLUSTER_CLOSED`, `CLUSTER_UNSIGNED`, `OPTION_INVALID`, and for durable
   * tasks also with `CLUSTER_CLIENT_MISSING`, `CLUSTER_NOT_DURABLE`. While the server is away it resolves all the
   * same, for durable tasks within five seconds: the node takes tasks once the server is back.
   */
  async lendWorkers(
    count: number = grantedCores().count,
    options: LendOptions = {},
  ): Promise<WorkerProvider> {
    integer('count', count, 1, maxWorkers);
    const { durable, modules, drainTimeoutMs } = fillLendOptions(options);
    const cluster = this.#requireTasks('workers are lent');
    const { signer } = cluster;
    const slots = new Slots(count);
    if (modules.size > 0 && signer !== undefined) {
      const wayOut = 'no modules where the cluster has a secret: its tasks may call everything';
      throw invalid('modules', options.modules, wayOut);
    }
    const lending =
      signer === undefined && modules.size > 0
        ? undefined
        : requireSigner(cluster, 'a node takes functions');
    this.#checkOpen(cluster);
    const tasks = durable ? await this.#takeTasks(cluster, slots, modules) : undefined;
    const onClosed = (): void => void this.#providers.delete(provider);
    const provider = new WorkerProvider({ slots, lending, tasks, drainTimeoutMs, onClosed });
    this.#providers.add(provider);
    return provider;
  }

  /** Starts the task runner. The cluster may be left meanwhile. */
  async #takeTasks(
    cluster: TaskOptions,
    slots: Slots,
    modules: ReadonlySet<string>,
  ): Promise<TaskRunner> {
    const starting = TaskRunner.start({ cluster, slots, modules });
    const tasks = await starting.catch((error: unknown) => {
      this.#checkOpen(cluster);
      throw error;
    });
    if (this.#closing === undefined) return tasks;
    await tasks.close(0);
    throw clusterClosed();
  }

  #requireTasks(what: string): TaskOptions {
    if (this.#tasks === undefined) throw noServer(what);
    return this.#tasks;
  }

  #checkOpen(cluster: TaskOptions): void {
    checkOpen(cluster);
    if (this.#closing !== undefined) throw clusterClosed();
  }

  /**
   * Waits for the tasks that run in lent workers, announces that this node leaves, sends the waiting
   * messages, and closes the connection. The loops do the same.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#providers].map((provider) => provider.close()));
    this.#nodes.leave();
    await this.#link?.answered();
    await this.#member.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Connects the program and its bus. Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_UNREACHABLE`,
 * `CLUSTER_REFUSED`, `RUNTIME_FOLDER_REFUSED`, `OPTION_INVALID`.
 */
export async function joinCluster(bus: EventBus, options: FilledClusterOptions): Promise<Cluster> {
  if (options.transport === 'local') return await joinLocal(bus, options);
  const node = randomBytes(12).toString('hex');
  const ticket = { options, node };
  const { connected, peer, signer } = await connectPeer(bus, ticket, programMember);
  const nodes = new Nodes(node, options.name, connected, signer);
  const tasks = { connection: connected.connection, name: options.name, signer };
  const cluster = new Cluster({ ticket, member: peer, nodes, tasks });
  try {
    await nodes.join();
    await Promise.race([cluster.closed, wait(objectionMs)]);
    return cluster;
  } catch (error) {
    await cluster.close(); // an open connection keeps the program alive
    throw codedError(ticket, error);
  }
}

async function joinLocal(bus: EventBus, options: FilledClusterOptions): Promise<Cluster> {
  const node = randomBytes(6).toString('hex'); // the path of a socket, of which it is a part, has a limit
  const ticket = { options, node };
  const member = await LocalMember.join(bus, { name: options.name, node, member: programMember });
  return new Cluster({ ticket, member, nodes: member });
}

/** Returns the coded error for a connection that ended or could not be made. */
function codedError({ options }: ClusterTicket, error: unknown): CodedError {
  return error instanceof CodedError ? error : connectError(serversOf(options), error);
}

/** The part of a loop in the cluster of its program. */
export interface LoopPeer {
  readonly peer: ClusterMember;
  /** For `clusterData`; missing on a cluster without a server. */
  readonly link: KvLink | undefined;
}

/** Connects a loop and its bus, in the same way as the program. Rejects as `joinCluster`. */
export async function joinLoop(
  bus: EventBus,
  ticket: ClusterTicket,
  member: number,
): Promise<LoopPeer> {
  const { options, node } = ticket;
  if (options.transport === 'local') {
    const peer = await LocalMember.join(bus, { name: options.name, node, member });
    return { peer, link: undefined };
  }
  const { connected, peer, signer } = await connectPeer(bus, ticket, member);
  const { connection } = connected;
  return { peer, link: new KvLink({ connection, name: options.name, signer }) };
}

async function connectPeer(bus: EventBus, { options, node }: ClusterTicket, member: number) {
  const { name, secret, local } = options;
  const sender = `${node}${member.toString(16).padStart(8, '0')}`;
  const connected = await connectNats(options, `manycore ${node} ${member}`);
  const signer = secret === undefined ? undefined : new Signer(secret, name);
  try {
    const peer = new ClusterPeer(bus, { connected, name, signer, sender, local });
    return { connected, peer, signer };
  } catch (error) {
    await connected.connection.close();
    throw error;
  }
}
