// A program that has joined a cluster: its connection, its bus on NATS, and who else is there. Its loops
// have connections of their own, made of the same ticket.

import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { EventBus } from '../bus/index.js';
import { CodedError } from '../errors.js';
import { integer, invalid } from '../internal/index.js';
import { grantedCores, type RemoteWorkers } from '../worker/index.js';
import { clusterClosed, connectError } from './errors.js';
import { connectNats } from './nats.js';
import { type ClusterNode, Nodes } from './nodes.js';
import {
  type FilledClusterOptions,
  fillLendOptions,
  type LendOptions,
  serversOf,
} from './options.js';
import { ClusterPeer } from './peer.js';
import { Signer } from './signature.js';
import { Slots } from './slots.js';
import { checkOpen, requireSigner, type TaskOptions } from './task-options.js';
import { TaskRunner } from './task-runner.js';
import { WorkerProvider } from './worker-provider.js';
import { ClusterWorkers } from './workers.js';

/** What a loop needs to be in the cluster of its program. */
export interface ClusterTicket {
  readonly options: FilledClusterOptions;
  /** The id of the program's node. */
  readonly node: string;
}

/** The number of the program itself among the loops of its node. */
const programMember = 0;
/** So long nodes that cannot be in one cluster with this one have to say so before it is joined, in ms. */
const objectionMs = 200;
const maxWorkers = 1024;

export interface ClusterEvents {
  /** A node has joined the cluster. */
  join: [ClusterNode];
  /** It has left, or its connection has ended. */
  leave: [ClusterNode];
}

/** Emits `join` and `leave`, each with a `ClusterNode`. */
export class Cluster extends EventEmitter<ClusterEvents> implements AsyncDisposable {
  /** @internal */
  readonly ticket: ClusterTicket;
  /**
   * Resolves after `close()`; rejects when the connection is over for good: with `CLUSTER_REFUSED` because a
   * node wants it so, or a server that takes the credentials no more.
   */
  readonly closed: Promise<void>;
  readonly #peer: ClusterPeer;
  readonly #nodes: Nodes;
  readonly #tasks: TaskOptions;
  readonly #providers = new Set<WorkerProvider>();
  #remote: RemoteWorkers | undefined;
  #refusal: CodedError | undefined;
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor(ticket: ClusterTicket, peer: ClusterPeer, nodes: Nodes, tasks: TaskOptions) {
    super();
    this.#tasks = tasks;
    this.ticket = ticket;
    this.#peer = peer;
    this.#nodes = nodes;
    nodes.on('join', (node) => this.emit('join', node));
    nodes.on('leave', (node) => this.emit('leave', node));
    nodes.on('refused', (error) => {
      this.#refusal ??= error;
      void this.close();
    });
    this.closed = peer.closed.then((error) => {
      if (this.#refusal !== undefined) throw this.#refusal;
      if (this.#closing === undefined && error !== undefined) throw codedError(ticket, error);
    });
    this.closed.catch(() => {}); // whoever wants to know asks
  }

  /** This program. */
  get node(): ClusterNode {
    return this.#nodes.own;
  }

  /** The others that are known now, the longest known first. */
  get nodes(): readonly ClusterNode[] {
    return this.#nodes.others;
  }

  /** Those of other machines, for `new Pool({ cluster })` alone. */
  get workers(): unknown {
    this.#remote ??= new ClusterWorkers(this.#tasks);
    return this.#remote;
  }

  /**
   * Lends so many workers of this machine to the pools of the cluster, until what it resolves with is closed, or
   * the cluster is left: tasks that run then have their time. Default: as many as cores are granted. Rejects with
   * `CLUSTER_CLOSED`, `CLUSTER_UNSIGNED`, `OPTION_INVALID`, and where it is to take durable tasks with
   * `CLUSTER_CLIENT_MISSING`, `CLUSTER_NOT_DURABLE`.
   */
  async lendWorkers(
    count: number = grantedCores().count,
    options: LendOptions = {},
  ): Promise<WorkerProvider> {
    integer('count', count, 1, maxWorkers);
    const { durable, modules, drainTimeoutMs } = fillLendOptions(options);
    const { signer } = this.#tasks;
    const slots = new Slots(count);
    if (modules.size > 0 && signer !== undefined) {
      const wayOut = 'no modules where the cluster has a secret: its tasks may call everything';
      throw invalid('modules', options.modules, wayOut);
    }
    const lending =
      signer === undefined && modules.size > 0
        ? undefined
        : requireSigner(this.#tasks, 'a node takes functions');
    this.#checkOpen();
    const tasks = durable ? await this.#takeTasks(slots, modules) : undefined;
    const onClosed = (): void => void this.#providers.delete(provider);
    const provider = new WorkerProvider({ slots, lending, tasks, drainTimeoutMs, onClosed });
    this.#providers.add(provider);
    return provider;
  }

  /** The cluster may be left while it starts. */
  async #takeTasks(slots: Slots, modules: ReadonlySet<string>): Promise<TaskRunner> {
    const starting = TaskRunner.start({ cluster: this.#tasks, slots, modules });
    const tasks = await starting.catch((error: unknown) => {
      this.#checkOpen();
      throw error;
    });
    if (this.#closing === undefined) return tasks;
    await tasks.close(0);
    throw clusterClosed();
  }

  #checkOpen(): void {
    checkOpen(this.#tasks);
    if (this.#closing !== undefined) throw clusterClosed();
  }

  /**
   * Lets the tasks end that run in workers which it lends, says that it leaves, sends what waits, and closes the
   * connection. The loops do the same.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#providers].map((provider) => provider.close()));
    this.#nodes.leave();
    await this.#peer.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Connects the program and its bus. Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_UNREACHABLE`,
 * `CLUSTER_REFUSED`, `OPTION_INVALID`.
 */
export async function joinCluster(bus: EventBus, options: FilledClusterOptions): Promise<Cluster> {
  const node = randomBytes(12).toString('hex');
  const ticket = { options, node };
  const { connected, peer, signer } = await connectPeer(bus, ticket, programMember);
  const nodes = new Nodes(node, options.name, connected, signer);
  const tasks = { connection: connected.connection, name: options.name, signer };
  const cluster = new Cluster(ticket, peer, nodes, tasks);
  try {
    await nodes.join();
    await Promise.race([cluster.closed, wait(objectionMs)]);
    return cluster;
  } catch (error) {
    await cluster.close(); // an open connection keeps the program alive
    throw codedError(ticket, error);
  }
}

/** What has ended a connection, or kept it from being made. */
function codedError({ options }: ClusterTicket, error: unknown): CodedError {
  return error instanceof CodedError ? error : connectError(serversOf(options), error);
}

/** Connects a loop and its bus, as the program was. Rejects as `joinCluster`. */
export async function joinLoop(
  bus: EventBus,
  ticket: ClusterTicket,
  member: number,
): Promise<ClusterPeer> {
  return (await connectPeer(bus, ticket, member)).peer;
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
