// The search over simulated programs: a pure function from configuration to stats, with the noise of
// machines. So hundreds of seeds show in no time what real runs could not: how often it finds an
// improvement, and how often it changes nothing without one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError } from '../../src/errors.js';
import { asItIs, type Configuration, configurationText } from '../../src/tune/configuration.js';
import type { RunStats } from '../../src/tune/load/run-stats.js';
import { type Candidate, runsOfHalving, runsOfPass, Search } from '../../src/tune/search/search.js';
import { type Random, seeded } from '../support/index.js';

const length = { warmUpSeconds: 1, seconds: 2 };
const seeds = 200;

/** Candidates of `manycore tune` for a server on two cores. */
const candidates: readonly Candidate[] = [
  ...[2, 4, 8, 16].map(
    (blockingThreads, cost): Candidate => ({
      parameter: 'blockingThreads',
      configuration: { blockingThreads },
      cost,
    }),
  ),
  ...[128, 256, 4144].map(
    (heapLimit, cost): Candidate => ({
      parameter: 'heapLimit',
      configuration: { heapLimit },
      cost,
    }),
  ),
  ...[1, 2].map(
    (processes, cost): Candidate => ({
      parameter: 'loops',
      configuration: { loops: { processes, loops: 2 / processes } },
      cost,
    }),
  ),
  { parameter: 'gcThreads', configuration: { gcThreads: 1 }, cost: 0 },
  { parameter: 'gcThreads', configuration: { gcThreads: 0 }, cost: 1 },
  { parameter: 'semiSpace', configuration: { semiSpace: 32 }, cost: 0 },
  { parameter: 'semiSpace', configuration: { semiSpace: 64 }, cost: 1 },
  { parameter: 'affinity', configuration: { affinity: [0] }, cost: 0 },
];

/** Returns an approximately normal number with this standard deviation. */
function normal(random: Random, deviation: number): number {
  let sum = 0;
  for (let each = 0; each < 12; each++) sum += random.next();
  return (sum - 6) * deviation;
}

interface Machine {
  /** Standard deviation of single runs. */
  readonly deviation: number;
  /** Share of runs that are disturbed, by up to 40 %. */
  readonly disturbed: number;
}

const calm: Machine = { deviation: 0.03, disturbed: 0.05 };
const busy: Machine = { deviation: 0.08, disturbed: 0.15 };

interface Outcome {
  readonly search: Search;
  readonly runs: number;
}

async function searchWith(
  seed: number,
  speedOf: (configuration: Configuration) => number,
  machine: Machine,
  runs = 200,
  given = candidates,
): Promise<Outcome> {
  const random = seeded(seed);
  let used = 0;
  const measure = async (configuration: Configuration): Promise<RunStats> => {
    used += 1;
    const drift = 0.05 * Math.sin(used / 15); // neighbours come and go
    const hit = random.next() < machine.disturbed ? 1 - 0.4 * random.next() : 1;
    const factor = Math.exp(normal(random, machine.deviation) + drift) * hit;
    return { perSecond: 1000 * speedOf(configuration) * factor, errorsPerSecond: 0 };
  };
  const search = new Search(asItIs, {
    measure,
    goal: 'throughput',
    length,
    runsLeft: () => runs - used,
    random: () => random.next(),
  });
  await search.run(given);
  return { search, runs: used };
}

/** Returns the share of seeds whose result satisfies `isWanted`. */
async function shareOf(
  speedOf: (configuration: Configuration) => number,
  machine: Machine,
  isWanted: (best: Configuration) => boolean,
): Promise<number> {
  let count = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const { search } = await searchWith(seed, speedOf, machine);
    if (isWanted(search.best)) count += 1;
  }
  return count / seeds;
}

const isAsItIs = (best: Configuration): boolean => configurationText(best) === 'as it is';

/** Speed that no parameter improves and that reductions lower. */
const wellSet = ({ gcThreads, affinity, loops }: Configuration): number =>
  (gcThreads === 0 ? 0.85 : 1) * (affinity === undefined ? 1 : 0.9) * (loops ? 0.98 : 1);
const nothingMatters = (): number => 1;
const poolTooSmall = ({ blockingThreads = 1 }: Configuration): number =>
  Math.min(2, blockingThreads);
const heapTooNear = ({ heapLimit = 64 }: Configuration): number => (heapLimit === 64 ? 0.6 : 1);
const loopsTooMany = ({ loops }: Configuration): number => (loops === undefined ? 0.85 : 1);

for (const [machineName, machine] of [
  ['calm', calm],
  ['busy', busy],
] as const) {
  test(`on a ${machineName} machine a well-set program is left alone, in 95 % of the seeds`, async () => {
    for (const speedOf of [wellSet, nothingMatters]) {
      const share = await shareOf(speedOf, machine, isAsItIs);
      assert.ok(share >= 0.95, `${speedOf.name}: ${share}`);
    }
  });

  test(`on a ${machineName} machine a pool that is too small is found`, async () => {
    const share = await shareOf(
      poolTooSmall,
      machine,
      ({ blockingThreads = 1 }) => blockingThreads >= 2,
    );
    assert.ok(share >= 0.95, String(share));
  });

  test(`on a ${machineName} machine a heap limit that is too near is found`, async () => {
    const share = await shareOf(heapTooNear, machine, ({ heapLimit }) => heapLimit !== undefined);
    assert.ok(share >= 0.95, String(share));
  });
}

test('too many loops are found on a calm machine', async () => {
  const share = await shareOf(loopsTooMany, calm, ({ loops }) => loops !== undefined);
  assert.ok(share >= 0.95, String(share));
});

test('the cheapest of equal configurations is usually chosen', async () => {
  const same = ({ blockingThreads }: Configuration): number =>
    blockingThreads === undefined ? 0.5 : 1;
  const share = await shareOf(same, calm, ({ blockingThreads }) => (blockingThreads ?? 99) <= 4);
  assert.ok(share >= 0.75, String(share));
});

test('two faults at a time are both found, one after the other', async () => {
  const both = (configuration: Configuration): number =>
    poolTooSmall(configuration) * heapTooNear(configuration);
  const share = await shareOf(
    both,
    calm,
    ({ blockingThreads, heapLimit }) => blockingThreads !== undefined && heapLimit !== undefined,
  );
  assert.ok(share >= 0.9, String(share));
});

test('a difference within noise is no advice, and the trial has its size', async () => {
  const slightly = ({ semiSpace }: Configuration): number => (semiSpace === 64 ? 1.02 : 1);
  let trials = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const { search } = await searchWith(seed, slightly, busy);
    trials += search.trials.length;
    assert.ok(search.trials.every(({ low, high, pairs, wins }) => low <= high && wins <= pairs));
    const isAdopted = search.trials.some((trial) => trial.isAdopted);
    assert.equal(isAdopted, !isAsItIs(search.best), `seed ${seed}`);
  }
  assert.ok(trials > 0, 'none came that far');
});

test('a configuration in which the program fails is excluded, with the reason, and the search continues', async () => {
  const random = seeded(1);
  const search = new Search(asItIs, {
    measure: async (configuration) => {
      if (configuration.heapLimit === 128) throw new CodedError('TUNE_PROGRAM_FAILED', 'no heap');
      return { perSecond: heapTooNear(configuration) + normal(random, 0.01), errorsPerSecond: 0 };
    },
    goal: 'throughput',
    length,
    runsLeft: () => 200,
    random: () => random.next(),
  });
  await search.run(candidates);
  const out = search.measured.filter(({ problem }) => problem !== undefined);
  assert.deepEqual(
    out.map(({ configuration, problem }) => [configuration, problem]),
    [[{ heapLimit: 128 }, 'no heap']],
  );
  assert.equal(search.best.heapLimit, 256);
});

test('a failure of the unchanged program ends the search, and so does a bug of ours', async () => {
  const failing = (fails: (configuration: Configuration) => boolean, error: Error) =>
    new Search(asItIs, {
      measure: async (configuration) => {
        if (fails(configuration)) throw error;
        return { perSecond: 1, errorsPerSecond: 0 };
      },
      goal: 'throughput',
      length,
      runsLeft: () => 200,
    }).run(candidates);
  const crash = new CodedError('TUNE_PROGRAM_FAILED', 'it crashed');
  await assert.rejects(failing(isAsItIs, crash), crash);
  const bug = new TypeError('a bug');
  await assert.rejects(
    failing((configuration) => !isAsItIs(configuration), bug),
    bug,
  );
});

test('one run that fails as the program is does not end the search', async () => {
  let runs = 0;
  const search = new Search(asItIs, {
    measure: async (configuration) => {
      runs += 1;
      if (isAsItIs(configuration) && runs % 7 === 0)
        throw new CodedError('TUNE_LOAD_FAILED', 'once');
      return { perSecond: poolTooSmall(configuration), errorsPerSecond: 0 };
    },
    goal: 'throughput',
    length,
    runsLeft: () => 200,
  });
  await search.run(candidates);
  assert.ok((search.best.blockingThreads ?? 1) > 1);
  assert.equal(
    search.measured.find(({ configuration }) => isAsItIs(configuration))?.problem,
    undefined,
  );
});

test('an aborted search keeps what it has measured', async () => {
  const controller = new AbortController();
  let runs = 0;
  const search = new Search(asItIs, {
    measure: async () => {
      runs += 1;
      if (runs === 5) controller.abort(new Error('SIGINT'));
      return { perSecond: 1, errorsPerSecond: 0 };
    },
    goal: 'throughput',
    length,
    runsLeft: () => 200,
    signal: controller.signal,
  });
  await assert.rejects(search.run(candidates), { code: 'ABORTED' });
  assert.equal(search.measured.flatMap((each) => each.runs).length, 5);
});

test('with time for few runs it tries the first candidates, and reports the others', async () => {
  for (const runs of [0, 10, 20, 40, 60, 200]) {
    const { search, runs: used } = await searchWith(1, poolTooSmall, calm, runs);
    assert.ok(used <= runs, `${used} of ${runs}`);
    const tried =
      candidates.length - new Set(search.skipped.map(({ configuration }) => configuration)).size;
    if (runs < 16) assert.deepEqual([tried, search.lacksTime], [0, true]);
    if (runs === 40) assert.ok(tried > 0 && tried < candidates.length, String(tried));
  }
});

test('a pass takes as many runs as announced', async () => {
  for (const count of [1, 2, 3, 5, 14]) {
    const { runs } = await searchWith(1, nothingMatters, calm, 1000, candidates.slice(0, count));
    assert.ok(runs === runsOfHalving(count) || runs <= runsOfPass(count), `${runs} for ${count}`);
    assert.ok(runs >= runsOfHalving(count));
  }
});

test('a goal of p99 prefers earlier answers', async () => {
  const random = seeded(3);
  const search = new Search(asItIs, {
    measure: async ({ blockingThreads = 1 }) => ({
      perSecond: 1000,
      errorsPerSecond: 0,
      p99Ms: (40 / blockingThreads) * (1 + normal(random, 0.02)),
    }),
    goal: 'p99',
    length,
    runsLeft: () => 200,
    random: () => random.next(),
  });
  await search.run(candidates);
  assert.equal(search.best.blockingThreads, 16);
});
