// The search for a better configuration: which is measured how often, and when a difference counts. It knows
// nothing of programs: a `measure` function has the stats, so that tests can ask it thousands of times.
//
// One pass: all candidates change one parameter of the configuration in force, the base. They take turns in rounds,
// base included, in an order drawn anew each time; after each rung of rounds the worse half goes
// (successive halving). The one that is left meets the base in pairs of runs that count for nothing
// before: a best of many looks better than it is, and only fresh runs say by how much. Where it crashes
// there, or more of its requests fail, the next best meets the base instead. It is adopted where it wins
// so many pairs, by a margin, as chance hardly does (statistics.ts); else all stays as it is. After a
// change another pass looks at the other parameters, until nothing is better or time is over.
// Why one parameter at a time: each advice then has one figure as its reason, and a grid of all would need
// hundreds of runs of some seconds each. Processes × loops is one parameter, because those belong together.

import { CodedError } from '../errors.js';
import { abortError, median, messageOf, quantile } from '../internal/index.js';
import { type Configuration, configurationText, type Parameter } from './configuration.js';
import { type Goal, missingMeasure, type RunLength, type RunStats, scoreOf } from './run-stats.js';
import { signTestP } from './statistics.js';

/** A configuration of one parameter that is worth trying. */
export interface Candidate {
  readonly parameter: Parameter;
  readonly configuration: Configuration;
  /** Where two do the same, the one with the lower cost is preferred: 0 is the cheapest of its parameter. */
  readonly cost: number;
}

/** What there is of one configuration. */
export interface ConfigurationRuns {
  readonly configuration: Configuration;
  readonly runs: RunStats[];
  /** Against the configuration in force at that time, run by run in the same round. */
  readonly ratios: number[];
  /** Why it is out: what went wrong under it. */
  problem?: string;
}

/** A candidate that met the base. */
export interface Trial {
  readonly parameter: Parameter;
  readonly base: Configuration;
  readonly configuration: Configuration;
  readonly pairs: number;
  /** By how much it was better: the median of the pairs, and the middle half of them. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  /** Of the pairs, those in which it was better by more than `minGain`. */
  readonly wins: number;
  /** How likely so many wins are by chance, where it is no better than that. */
  readonly p: number;
  readonly isAdopted: boolean;
  /** false: more pairs might have adopted it, and there was no time for them. */
  readonly isDecided: boolean;
}

export interface SearchOptions {
  /** Rejects with an error of the configuration's own (out, and the search goes on) or with `ABORTED`. */
  readonly measure: (configuration: Configuration, length: RunLength) => Promise<RunStats>;
  readonly goal: Goal;
  readonly length: RunLength;
  /** How many more runs the time allows; 0: it is over. */
  readonly runsLeft: () => number;
  /** In `[0, 1)`. */
  readonly random?: () => number;
  readonly signal?: AbortSignal;
  /** Before each run. */
  readonly onRun?: (configuration: Configuration) => void;
}

/** Less than this is not worth a change, and below what machines vary by themselves. */
export const minGain = 1.03;
/** How often a candidate that is no better may be adopted, at most. */
const maxP = 0.02;
const roundsPerRung = 2;
/** Of a run that fails. */
const maxAttempts = 2;
/** A share of failed requests that is larger by more than this is no accident. */
const maxErrorRise = 0.01;
const maxPairs = 12;
/** Fewer cannot reach `maxP`. */
const minPairs = 6;
/** What one step of cost has to bring, as a logarithm. */
const perCost = 0.01;
/** Worse than this in one pass: not tried in the next. */
const hopeless = 0.9;

export class Search {
  /** The configuration in force: as it was, and all that was adopted. */
  best: Configuration;
  readonly trials: Trial[] = [];
  /** Candidates for which there was no time. */
  readonly skipped: Candidate[] = [];
  /** Whether the best of a pass could not be confirmed for want of time. */
  lacksTime = false;
  readonly #options: SearchOptions;
  readonly #runs = new Map<string, ConfigurationRuns>();

  constructor(base: Configuration, options: SearchOptions) {
    this.best = base;
    this.#options = options;
  }

  /** In the order in which they were first measured. */
  get measured(): readonly ConfigurationRuns[] {
    return [...this.#runs.values()];
  }

  /** Rejects with `ABORTED`, and with what the configuration in force fails with. */
  async run(candidates: readonly Candidate[]): Promise<void> {
    let open = [...candidates];
    while (open.length > 0) {
      const winner = await this.#pass(open);
      if (winner === undefined) return;
      // The others have been worth something beside the old base: once more, beside the new one.
      open = open
        .filter(
          (each) =>
            each.parameter !== winner.parameter && this.#ratioOf(each, winner.base) > hopeless,
        )
        .sort((a, b) => this.#ratioOf(b, winner.base) - this.#ratioOf(a, winner.base));
    }
  }

  /** What was adopted, or nothing. */
  async #pass(candidates: readonly Candidate[]): Promise<Trial | undefined> {
    const affordable = this.#affordable(candidates);
    if (affordable.length === 0) this.lacksTime = true;
    const trial = await this.#meetBest(await this.#halve(affordable));
    if (trial === undefined) return undefined;
    this.trials.push(trial);
    if (!trial.isAdopted) return undefined;
    this.best = trial.configuration;
    return trial;
  }

  /** Lets the best meet the base. One that fails there has shown nothing, and the next best has its turn. */
  async #meetBest(candidates: readonly Candidate[]): Promise<Trial | undefined> {
    const base = this.best;
    for (const each of candidates) {
      if (!(this.#ratioOf(each, base) >= minGain)) continue;
      const trial = await this.#confirm(each);
      if (trial !== undefined || this.lacksTime) return trial;
    }
    return undefined;
  }

  /** Configurations that hang take more than their time. */
  #hasTime(): boolean {
    if (this.#options.runsLeft() > 0) return true;
    this.lacksTime = true;
    return false;
  }

  /** The first of them, so many that there is time to confirm the best. */
  #affordable(candidates: readonly Candidate[]): readonly Candidate[] {
    const left = this.#options.runsLeft();
    let count = candidates.length;
    while (count > 0 && runsOfHalving(count) + 2 * minPairs > left) count -= 1;
    this.skipped.push(...candidates.slice(count));
    return candidates.slice(0, count);
  }

  /** All that are not out, best first; `[]` where time ends before the best is known. */
  async #halve(candidates: readonly Candidate[]): Promise<Candidate[]> {
    const rest: Candidate[] = [];
    let alive = [...candidates];
    while (alive.length > 0 && this.#hasTime()) {
      for (let round = 0; round < roundsPerRung; round++) alive = await this.#round(alive);
      alive = this.#ranked(alive.filter((each) => !this.#failsMore(each)));
      if (alive.length <= 2) return [...alive, ...this.#ranked(rest)];
      rest.push(...alive.splice(Math.ceil(alive.length / 2)));
    }
    return alive.length > 0 ? [] : this.#ranked(rest);
  }

  #ranked(candidates: readonly Candidate[]): Candidate[] {
    const base = this.best;
    return [...candidates].sort((a, b) => this.#rankOf(b, base) - this.#rankOf(a, base));
  }

  /** Each of them once, and the base; returns those that are not out. */
  async #round(candidates: readonly Candidate[]): Promise<Candidate[]> {
    const base = this.best;
    const turns: (Candidate | undefined)[] = this.#shuffle([undefined, ...candidates]);
    const scores = new Map<Candidate | undefined, number>();
    for (const each of turns) {
      const score = await this.#score(each === undefined ? base : over(base, each), each);
      if (score !== undefined) scores.set(each, score);
    }
    const ofBase = scores.get(undefined) ?? Number.NaN;
    return candidates.filter((each) => {
      const score = scores.get(each);
      if (score === undefined) return false;
      this.#runsOf(over(base, each)).ratios.push(score / ofBase);
      return true;
    });
  }

  /** `undefined`: it is out. */
  async #score(
    configuration: Configuration,
    candidate: Candidate | undefined,
  ): Promise<number | undefined> {
    const { measure, length, goal, signal, onRun } = this.#options;
    if (signal?.aborted === true) throw abortError(signal);
    const kept = this.#runsOf(configuration);
    // Any run may fail once. What is tried may fail again; how it is started now may not.
    for (let attempt = 1; ; attempt++) {
      onRun?.(configuration);
      try {
        const stats = await measure(configuration, length);
        const score = scoreOf(stats, goal);
        if (Number.isNaN(score)) throw missingMeasure(goal);
        kept.runs.push(stats);
        return score;
      } catch (error) {
        if (!(error instanceof CodedError) || error.code === 'ABORTED') throw error;
        if (attempt < maxAttempts) continue;
        if (candidate === undefined) throw error;
        kept.problem = messageOf(error);
        return undefined;
      }
    }
  }

  /** Puts one out under which more requests fail than under the base: what is refused is answered fast. */
  #failsMore(candidate: Candidate): boolean {
    const kept = this.#runsOf(over(this.best, candidate));
    const [share, before] = [errorShare(kept.runs), errorShare(this.#runsOf(this.best).runs)];
    if (!(share > before + maxErrorRise)) return false;
    const percents = [share, before].map((each) => `${(100 * each).toFixed(1)} %`);
    kept.problem = `${percents[0]} of its requests failed, against ${percents[1]} without it`;
    return true;
  }

  /** `undefined`: it is out, or there is no time for it. */
  async #confirm(candidate: Candidate): Promise<Trial | undefined> {
    const base = this.best;
    const configuration = over(base, candidate);
    const pairs = Math.min(maxPairs, Math.floor(this.#options.runsLeft() / 2));
    if (pairs < minPairs) {
      this.lacksTime = true;
      return undefined;
    }
    const ratios: number[] = [];
    while (ratios.length < pairs && canWin(ratios, pairs) && this.#hasTime()) {
      const scores = new Map<Configuration, number>();
      for (const each of this.#shuffle([base, configuration])) {
        const score = await this.#score(each, each === configuration ? candidate : undefined);
        if (score === undefined) return undefined;
        scores.set(each, score);
      }
      if (this.#failsMore(candidate)) return undefined;
      ratios.push((scores.get(configuration) ?? Number.NaN) / (scores.get(base) ?? Number.NaN));
    }
    this.#runsOf(configuration).ratios.push(...ratios);
    const wins = ratios.filter(isWin).length;
    const p = signTestP(wins, ratios.length);
    return {
      parameter: candidate.parameter,
      base,
      configuration,
      pairs: ratios.length,
      ratio: median(ratios),
      low: quantile(ratios, 0.25),
      high: quantile(ratios, 0.75),
      wins,
      p,
      isAdopted: p <= maxP,
      isDecided: p <= maxP || !canWin(ratios, maxPairs),
    };
  }

  /** What its runs say, with a handicap for what it costs. */
  #rankOf(candidate: Candidate, base: Configuration): number {
    return Math.log(this.#ratioOf(candidate, base)) - candidate.cost * perCost;
  }

  /** NaN where nothing was measured, or it is out. */
  #ratioOf(candidate: Candidate, base: Configuration): number {
    const kept = this.#runs.get(configurationText(over(base, candidate)));
    if (kept === undefined || kept.problem !== undefined) return Number.NaN;
    return median(kept.ratios);
  }

  #runsOf(configuration: Configuration): ConfigurationRuns {
    const key = configurationText(configuration);
    const known = this.#runs.get(key) ?? { configuration, runs: [], ratios: [] };
    this.#runs.set(key, known);
    return known;
  }

  #shuffle<T>(items: readonly T[]): T[] {
    const { random = Math.random } = this.#options;
    return items
      .map((item) => ({ item, at: random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ item }) => item);
  }
}

/** Runs that halving takes, base included, and one to spare for each rung. */
export function runsOfHalving(candidates: number): number {
  let runs = 0;
  for (let alive = candidates; alive > 0; alive = alive <= 2 ? 0 : Math.ceil(alive / 2)) {
    runs += roundsPerRung * (alive + 1);
  }
  return runs;
}

/** Runs of a whole pass. */
export function runsOfPass(candidates: number): number {
  return runsOfHalving(candidates) + 2 * maxPairs;
}

function over(base: Configuration, { configuration }: Candidate): Configuration {
  return { ...base, ...configuration };
}

/** Of its requests, in the median of its runs. */
function errorShare(runs: readonly RunStats[]): number {
  return median(
    runs.map(({ perSecond, errorsPerSecond: errors }) => errors / (perSecond + errors || 1)),
  );
}

function isWin(ratio: number): boolean {
  return ratio > minGain;
}

/** Whether the pairs that are still to come could decide for it. */
function canWin(ratios: readonly number[], pairs: number): boolean {
  const losses = ratios.filter((ratio) => !isWin(ratio)).length;
  return signTestP(pairs - losses, pairs) <= maxP;
}
