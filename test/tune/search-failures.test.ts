// The search with failing runs or too little time: exclusions, replacements, and the report.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError } from '../../src/errors.js';
import { asItIs, type Configuration, configurationText } from '../../src/tune/configuration.js';
import type { Goal, RunStats } from '../../src/tune/load/run-stats.js';
import { configurationReports, verdictOf } from '../../src/tune/report.js';
import { type Candidate, runsOfHalving, Search } from '../../src/tune/search/search.js';
import { seeded } from '../support/index.js';

const candidates = [2, 4, 8].map(
  (blockingThreads, cost): Candidate => ({
    parameter: 'blockingThreads',
    configuration: { blockingThreads },
    cost,
  }),
);

interface Run {
  readonly configuration: Configuration;
  /** Number of the run of this configuration, from 1 on. */
  readonly number: number;
  /** Number of all runs. */
  readonly total: number;
}

interface Outcome {
  readonly search: Search;
  readonly verdict: string;
}

/** `measure` may throw; `lastRun`: after this run time is over, unexpectedly. */
async function searchWith(
  measure: (run: Run) => Partial<RunStats>,
  { lastRun = 1000, goal = 'throughput' }: { lastRun?: number; goal?: Goal } = {},
): Promise<Outcome> {
  const counts = new Map<string, number>();
  const random = seeded(1);
  let total = 0;
  const search = new Search(asItIs, {
    goal,
    length: { warmUpSeconds: 1, seconds: 1 },
    random: () => random.next(),
    runsLeft: () => (total >= lastRun ? 0 : 200),
    measure: async (configuration) => {
      const number = (counts.get(configurationText(configuration)) ?? 0) + 1;
      counts.set(configurationText(configuration), number);
      total += 1;
      return { perSecond: 1, errorsPerSecond: 0, ...measure({ configuration, number, total }) };
    },
  });
  await search.run(candidates);
  const configurations = configurationReports(search, goal);
  return {
    search,
    verdict: verdictOf(search, configurations, { goal, unit: 'requests', isComplete: true }),
  };
}

function crash(): never {
  throw new CodedError('TUNE_PROGRAM_FAILED', 'it crashed');
}

/** More threads are faster. */
function speedOf({ blockingThreads = 1 }: Configuration): number {
  return blockingThreads;
}

function problemOf(search: Search, text: string): string | undefined {
  return search.measured.find(({ configuration }) => configurationText(configuration) === text)
    ?.problem;
}

for (const failing of [1, 3, 8]) {
  test(`one failed run, number ${failing}, excludes nothing`, async () => {
    const { search } = await searchWith(({ configuration, number }) => {
      if (configuration.blockingThreads === 8 && number === failing) crash();
      return { perSecond: speedOf(configuration) };
    });
    assert.deepEqual(search.best, { blockingThreads: 8 });
    assert.equal(problemOf(search, 'UV_THREADPOOL_SIZE=8'), undefined);
  });
}

test('if the best fails against the configuration in force, the next best follows', async () => {
  const { search, verdict } = await searchWith(({ configuration, number }) => {
    if (configuration.blockingThreads === 8 && number > 5) crash();
    return { perSecond: speedOf(configuration) };
  });
  assert.deepEqual(search.best, { blockingThreads: 4 });
  assert.equal(problemOf(search, 'UV_THREADPOOL_SIZE=8'), 'it crashed');
  assert.match(verdict, /^Set UV_THREADPOOL_SIZE=4: 4\.00 times/);
});

test('candidates that halving dropped are tried in the end', async () => {
  const { search } = await searchWith(({ configuration, number }) => {
    if (speedOf(configuration) > 2 && number > 4) crash();
    return { perSecond: speedOf(configuration) };
  });
  assert.deepEqual(search.best, { blockingThreads: 2 });
});

test('the verdict names no excluded configuration as the best', async () => {
  const { search, verdict } = await searchWith(({ configuration, number }) => {
    if (configuration.blockingThreads === 8 && number > 5) crash();
    return { perSecond: configuration.blockingThreads === 8 ? 3 : 1 };
  });
  assert.deepEqual(search.best, {});
  assert.match(
    verdict,
    /none was better by more than 3 % \(the best, .*: 1\.00 times\), and 1 more is excluded/,
  );
  assert.doesNotMatch(verdict, /3\.00/);
});

test('when all candidates are excluded, the verdict reports it', async () => {
  const { verdict } = await searchWith(({ configuration }) =>
    configuration === asItIs ? {} : crash(),
  );
  assert.equal(verdict, 'Leave it as it is: all candidates are excluded.');
});

const beforePairs = runsOfHalving(candidates.length);
for (const [pairs, isAdopted] of [
  [5, false],
  [6, true],
  [8, true],
] as const) {
  test(`${pairs} of ${pairs} pairs when time ends ${isAdopted ? 'are enough' : 'are reported as too few'}`, async () => {
    const { search, verdict } = await searchWith(
      ({ configuration }) => ({ perSecond: speedOf(configuration) }),
      {
        lastRun: beforePairs + 2 * pairs,
      },
    );
    const [trial] = search.trials;
    assert.deepEqual([trial?.pairs, trial?.wins], [pairs, pairs]);
    assert.deepEqual([trial?.isAdopted, trial?.isDecided], [isAdopted, isAdopted]);
    const expected = isAdopted
      ? /^Set/
      : /in only 5 of 5 pairs of runs, and there was no time.*--minutes/;
    assert.match(verdict, expected);
    assert.doesNotMatch(verdict, /noise/);
  });
}

test('inconclusive pairs are within noise, not a lack of time', async () => {
  // Better only during the comparison of all candidates.
  const { search, verdict } = await searchWith(({ configuration, total }) => ({
    perSecond: total > beforePairs ? 1 : speedOf(configuration),
  }));
  assert.deepEqual(
    search.trials.map(({ isAdopted, isDecided }) => [isAdopted, isDecided]),
    [[false, true]],
  );
  assert.match(
    verdict,
    /better by more than 3 % in only 0 of 3 pairs of runs, which is within noise/,
  );
});

test('the verdict reports that time ended before the best was confirmed', async () => {
  const { verdict } = await searchWith(
    ({ configuration }) => ({ perSecond: speedOf(configuration) }),
    {
      lastRun: beforePairs,
    },
  );
  assert.match(
    verdict,
    /^Leave it as it is: UV_THREADPOOL_SIZE=8 seemed best \(\d.\d\d times\), and there was no time/,
  );
});

for (const goal of ['throughput', 'p99', 'cpu'] as const) {
  test(`a configuration in which requests fail is excluded under any goal: ${goal}`, async () => {
    const { search } = await searchWith(
      ({ configuration }) => {
        const isRefused = configuration.blockingThreads === 8;
        const perSecond = 100 * speedOf(configuration);
        return {
          perSecond,
          errorsPerSecond: isRefused ? 800 : 0,
          p99Ms: 100 / perSecond,
          cpuCores: 1,
        };
      },
      { goal },
    );
    assert.deepEqual(search.best, { blockingThreads: 4 });
    const problem = problemOf(search, 'UV_THREADPOOL_SIZE=8') ?? '';
    assert.equal(problem, '50.0 % of its requests failed, against 0.0 % without it');
  });
}

test('requests that fail as often as they do now exclude nothing', async () => {
  const { search } = await searchWith(({ configuration }) => {
    const perSecond = speedOf(configuration);
    return { perSecond, errorsPerSecond: perSecond };
  });
  assert.deepEqual(search.best, { blockingThreads: 8 });
});

for (const [what, goal, stats] of [
  ['no CPU time', 'cpu', { cpuCores: 0 }],
  ['no CPU figure', 'cpu', {}],
  ['no percentile', 'p99', {}],
  ['a percentile of 0', 'p99', { p99Ms: 0 }],
] as const) {
  test(`a configuration with ${what} under the goal ${goal} is excluded, and not the best`, async () => {
    const { search } = await searchWith(
      ({ configuration }) =>
        configuration.blockingThreads === 8
          ? stats
          : { cpuCores: 1, p99Ms: 1 / speedOf(configuration), perSecond: speedOf(configuration) },
      { goal },
    );
    assert.deepEqual(search.best, { blockingThreads: 4 });
    assert.match(
      problemOf(search, 'UV_THREADPOOL_SIZE=8') ?? '',
      new RegExp(`^the goal is ${goal}`),
    );
    for (const { ratios } of search.measured) assert.ok(ratios.every(Number.isFinite));
  });
}
