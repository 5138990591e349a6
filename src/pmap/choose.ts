// Which runner a map gets. What was asked for by name is what it gets; else the pool of `run` or one
// given, and then what is measured decides: where mapping an item takes less than sending it, this
// thread maps the items itself, a little at a time. Only where nobody could tell the difference: for
// items that are no objects, and a mapper whose captures can never change.

import { isImmutable } from '../channels/index.js';
import type { AnyFunction } from '../context/index.js';
import { type Chunk, parentRelay } from '../host/index.js';
import { type ChunkCall, type Pool, poolFor } from '../pool/index.js';
import { type ItemCost, isCheaperHere } from './chunk.js';
import type { FilledMapOptions } from './options.js';
import { RelayRunner } from './relay.js';
import { type ChunkRunner, InlineRunner, type MappedChunk, PoolRunner } from './runner.js';

/**
 * `mayBeHere`: the items are sent with each chunk, so that sending them may be what costs most. Throws
 * `TRANSFER_…` when `mapper` cannot travel, `CHANNEL_UNAVAILABLE`, `POOL_CLOSED`. */
export function chooseRunner(
  mapper: AnyFunction,
  options: FilledMapOptions,
  mayBeHere: boolean,
): ChunkRunner {
  const { channel } = options;
  if (channel === 'inline') return new InlineRunner(mapper, 'asked for');
  const pool = options.pool ?? poolFor(channel);
  if (pool === undefined || pool.maxHosts === 0) return insideHost(mapper);
  const runner = new PoolRunner(pool, mapper, whyOf(pool, options));
  const isFree = mayBeHere && channel === 'auto' && runner.isConstant;
  return isFree ? new AutoRunner(runner, mapper) : runner;
}

function whyOf({ channelKind }: Pool, { pool, channel }: FilledMapOptions): string {
  if (pool !== undefined) return 'it is that of the pool';
  if (channel !== 'auto') return 'asked for';
  return channelKind === 'shm'
    ? 'shared memory works here, and is faster than the others'
    : 'there is no shared memory here: manycore doctor says why';
}

function insideHost(mapper: AnyFunction): ChunkRunner {
  const relay = parentRelay();
  if (relay === undefined) return new InlineRunner(mapper, 'its pool came with a task');
  return new RelayRunner(relay, mapper);
}

/** So many chunks run here before one goes to a host: what sending costs may have changed. */
const chunksBetweenProbes = 64;

/** Hosts, or this thread while mapping an item takes less than sending it. */
class AutoRunner implements ChunkRunner {
  readonly isHere = false;
  readonly sharesMemory: boolean;
  readonly knownCost: ItemCost | undefined;
  readonly #hosts: PoolRunner;
  readonly #here: InlineRunner;
  #current: ChunkRunner;
  #cost: ItemCost | undefined;
  #chunks = 0;

  constructor(hosts: PoolRunner, mapper: AnyFunction) {
    this.sharesMemory = hosts.sharesMemory;
    this.knownCost = hosts.knownCost;
    this.#hosts = hosts;
    this.#here = new InlineRunner(mapper, '');
    this.#current = hosts;
    if (this.knownCost !== undefined) this.#decide(this.knownCost);
  }

  get channel(): ChunkRunner['channel'] {
    return this.#current.channel;
  }

  get why(): string {
    if (this.#current === this.#hosts || this.#cost?.runMs === undefined) return this.#hosts.why;
    const { runMs, sendMs } = this.#cost;
    return `an item takes ${microseconds(runMs)} to map and ${microseconds(sendMs)} to send`;
  }

  get hosts(): number {
    return this.#current.hosts;
  }

  get window(): number {
    return this.#current.window;
  }

  run(chunk: Chunk, call: ChunkCall): Promise<MappedChunk> {
    this.#chunks += 1;
    const isProbe = this.#chunks % chunksBetweenProbes === 0;
    const isHere = this.#current === this.#here && !isProbe && Array.isArray(chunk.items);
    return (isHere && isImmutable(chunk.items) ? this.#here : this.#hosts).run(chunk, call);
  }

  learn(cost: ItemCost): void {
    this.#hosts.learn(cost);
    this.#decide(cost);
  }

  #decide(cost: ItemCost): void {
    this.#cost = cost;
    this.#current = isCheaperHere(cost) ? this.#here : this.#hosts;
  }

  close(): void {
    this.#hosts.close();
  }
}

function microseconds(ms: number): string {
  return `${(ms * 1000).toPrecision(2)} µs`;
}
