// Restarts of lost instances on loops that the test starts and ends: each is one process. An instance that waits
// too long for a loop starts on another one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError } from '../../src/errors.js';
import { DirectedDeployment, type Placed } from '../../src/units/director/deployment.js';
import type { LoopEntry } from '../../src/units/director/loop-entry.js';
import { spread } from '../../src/units/director/placement.js';
import { Restarts } from '../../src/units/director/restarts.js';
import { fillDeployOptions } from '../../src/units/options.js';
import { waitFor } from '../support/index.js';

const crashed = { why: 'exit code 7', isFromOutside: false };
const killed = { why: 'killed by SIGKILL', isFromOutside: true };

/** Loops, each in a process of its own whose pid is its number, and the deployments on them. */
class Machine {
  #loops: LoopEntry[] = [];
  readonly #deployments: DirectedDeployment[] = [];
  /** Processes that were asked for besides those of the capacity. */
  grown = 0;
  /** Requests for more that were refused. */
  refused = 0;
  readonly restarts: Restarts;

  constructor(capacity: number, mayGrow = true) {
    this.restarts = new Restarts({
      capacity: {
        loops: capacity,
        grow: async () => {
          if (!mayGrow) {
            this.refused += 1;
            throw new CodedError('OPTION_INVALID', 'there may be no more');
          }
          this.grown += 1;
          this.arrive(1000 + this.grown);
        },
      },
      loops: () => this.#loops,
      deployments: () => this.#deployments,
      ownerOf: (placed) =>
        this.#deployments.find((each) => each.id === placed.deployment && each.keeps(placed)),
      groupOf: () => undefined,
      place: (deployment) => this.#place(deployment),
      start: async (_, placed) => void this.#start([placed]),
    });
    for (let loop = 1; loop <= capacity; loop += 1) this.arrive(loop);
  }

  #place({ id, placed: own }: DirectedDeployment): LoopEntry | undefined {
    const loops = this.restarts.allowed(id, this.#loops);
    if (loops.length === 0) throw new CodedError('UNIT_START_FAILED', 'no loop is there');
    const all = this.#deployments.flatMap(({ placed }) => placed);
    return spread(1, loops, { own, all })[0];
  }

  #start(placed: readonly Placed[]): void {
    for (const each of placed) each.state = 'running';
  }

  /** Deploys an instance on each of these loops. */
  async deploy(...loops: readonly number[]): Promise<DirectedDeployment> {
    const source = { kind: 'value', value: class Unit {} } as const;
    const id = this.#deployments.length + 1;
    const deployment = new DirectedDeployment({
      id,
      source,
      options: fillDeployOptions(source, { instances: loops.length }),
      parent: undefined,
      place: () => loops.map((loop) => ({ loop, pid: loop })),
      start: async (placed) => this.#start(placed),
      stop: async () => {},
      settled: async () => {},
      move: async () => {},
      redeploy: async () => {},
      health: async () => [],
      onEnded: () => this.restarts.forget(id),
    });
    this.#deployments.push(deployment);
    await deployment.begin();
    return deployment;
  }

  arrive(loop: number): void {
    const entry = { loop, pid: loop, index: 0, isLeaving: false };
    this.#loops.push(entry);
    this.restarts.loopArrived(entry);
  }

  lose(loop: number | undefined, end: { why: string; isFromOutside: boolean }): void {
    const entry = this.#loops.find((each) => each.loop === loop) ?? assert.fail(`loop ${loop}`);
    this.#loops = this.#loops.filter((each) => each !== entry);
    const all = this.#deployments.flatMap((each) => each.loopEnded(entry.loop));
    this.restarts.processLost({ pid: entry.pid, ...end });
    this.restarts.loopLost(entry, { lost: all.filter(({ state }) => state === 'lost'), all });
  }
}

function loopOf({ placed }: DirectedDeployment): number | undefined {
  const [only] = placed;
  return only?.state === 'running' ? only.loop : undefined;
}

test('an instance waits for the loop that replaces its own', async () => {
  const machine = new Machine(2);
  const unit = await machine.deploy(1);
  await machine.deploy(2);
  machine.lose(1, killed);
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(unit.placed[0]?.state, 'lost');
  machine.arrive(3);
  await waitFor(() => loopOf(unit) === 3);
});

test('it starts on another one when that comes late', async () => {
  const machine = new Machine(2);
  const unit = await machine.deploy(1);
  machine.lose(1, killed);
  await waitFor(() => loopOf(unit) === 2);
});

test('it starts on the first one that comes when none was there in time', async () => {
  const machine = new Machine(2);
  const units = [await machine.deploy(1), await machine.deploy(2), await machine.deploy(2)];
  machine.lose(1, killed);
  machine.lose(2, killed);
  await new Promise((resolve) => setTimeout(resolve, 1100)); // longer than they wait
  machine.arrive(3);
  await waitFor(() => units.every((each) => loopOf(each) === 3));
});

/** A unit with a process of its own, which it has ended twice. */
async function guiltyUnit(machine: Machine): Promise<DirectedDeployment> {
  const unit = await machine.deploy(1);
  for (const next of [11, 12]) {
    machine.lose(loopOf(unit), crashed);
    machine.arrive(next);
    await waitFor(() => loopOf(unit) !== undefined);
  }
  return unit;
}

test('instances that may have ended their loop start on an empty one', async () => {
  const machine = new Machine(2);
  const suspects = [await machine.deploy(1), await machine.deploy(1)];
  await machine.deploy(2);
  machine.lose(1, crashed);
  machine.arrive(3); // all loops are there before anybody is judged
  await waitFor(() => suspects.every((each) => loopOf(each) !== undefined));
  assert.deepEqual(suspects.map(loopOf), [3, 3]);
});

test('a guilty unit gets a process of its own although others are missing', async () => {
  const machine = new Machine(3);
  const [first, other] = [await machine.deploy(2), await machine.deploy(3)];
  const guilty = await guiltyUnit(machine);
  const own = loopOf(guilty);
  machine.lose(2, killed); // nothing replaces it
  await waitFor(() => loopOf(first) !== undefined);
  machine.lose(own, killed);
  await waitFor(() => loopOf(guilty) !== undefined);
  const loops = [first, other, guilty].map(loopOf);
  assert.ok(!loops.slice(0, 2).includes(loops[2]), String(loops));
});

test('a guilty unit that is late gets the next process, before instances that wait', async () => {
  const machine = new Machine(3);
  const others = [await machine.deploy(2), await machine.deploy(3), await machine.deploy(3)];
  const guilty = await guiltyUnit(machine);
  machine.lose(3, crashed); // the two on it are suspects, and wait for the loop that replaces it
  machine.lose(loopOf(guilty), crashed);
  await waitFor(() => loopOf(guilty) !== undefined);
  assert.deepEqual(
    { own: loopOf(guilty), grown: machine.grown, others: others.map(loopOf) },
    { own: 1001, grown: 1, others: [2, undefined, undefined] },
  );
});

test('a guilty unit that may have no further process waits for the one that is late', async () => {
  const machine = new Machine(2, false);
  const other = await machine.deploy(2);
  const guilty = await guiltyUnit(machine);
  machine.lose(loopOf(guilty), crashed);
  await waitFor(() => machine.refused > 0);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([loopOf(guilty), loopOf(other)], [undefined, 2]);
  machine.arrive(13);
  await waitFor(() => loopOf(guilty) === 13);
});

test('an instance of a unit that became guilty while it waited starts alone', async () => {
  const machine = new Machine(3);
  await machine.deploy(3);
  const guilty = await machine.deploy(1, 2);
  const [waits, fails] = guilty.placed;
  machine.lose(2, crashed);
  machine.arrive(12);
  await waitFor(() => fails?.loop === 12 && fails.state === 'running');
  machine.lose(1, killed); // nothing replaces it
  await waitFor(() => waits?.state === 'lost');
  machine.lose(12, crashed);
  await waitFor(() => waits?.state === 'running');
  assert.notEqual(waits?.loop, 3);
});
