// The search for a better configuration: how often each one is measured, and which difference counts. It is
// independent of programs: a `measure` function returns the stats, so that tests can call it thousands of
// times.
//
// One pass: every candidate changes one parameter of the base, the configuration in force. All run in
// rounds, base included, in an order drawn anew each time. After each rung of rounds the worse half is
// dropped (successive halving). The last one meets the base in pairs of fresh runs: the best of many seems
// better than it is, and only fresh runs show by how much. If it crashes there, or more of its requests
// fail, the next best meets the base instead. A candidate is adopted when it wins, by a margin, so many
// pairs as chance hardly brings (statistics.ts). After a change another pass tries the other parameters,
// until nothing is better or time is over.
//
// One parameter at a time: each advice then has one number as its reason, and a grid of all would need
// hundreds of runs of some seconds each. Processes × loops is one parameter, because these belong together.

import { CodedError } from '../../errors.js';
import { abortError, median, messageOf, quantile } from '../../lib/index.js';
import { type Configuration, configurationText, type Parameter } from '../configuration.js';
import {
  type Goal,
  missingMeasure,
  type RunLength,
  type RunStats,
  scoreOf,
} from '../load/run-stats.js';
import { signTestP } from './statistics.js';

/** A configuration of one parameter to be tried. */
export interface Candidate {
  readonly parameter: Parameter;
  readonly configuration: Configuration;
  /** Cost within its parameter, 0 for the cheapest: of two equal candidates the cheaper one is preferred. */
  readonly cost: number;
}

/** Measurements of one configuration. */
export interface ConfigurationRuns {
  readonly configuration: Configuration;
  readonly runs: RunStats[];
  /** Ratios to the configuration in force at that time, each from runs of the same round. */
  readonly ratios: number[];
  /** Failure that excluded it. */
  problem?: string;
}

/** The comparison of a candidate with the base. */
export interface Trial {
  readonly parameter: Parameter;
  readonly base: Configuration;
  readonly configuration: Configuration;
  readonly pairs: number;
  /** Median of the pairs' ratios, and their quartiles. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  /** Pairs in which the candidate was better by more than `minGain`. */
  readonly wins: number;
  /** Probability of as many wins by chance, for a candidate that is no better than that. */
  readonly p: number;
  readonly isAdopted: boolean;
  /** False: more pairs might have adopted it, and time was over. */
  readonly isDecided: boolean;
}

export interface SearchOptions {
  /**
   * Rejects with an error of the configuration (it is excluded, and the search continues) or with
   * `ABORTED`.
   */
  readonly measure: (configuration: Configuration, length: RunLength) => Promise<RunStats>;
  readonly goal: Goal;
  readonly length: RunLength;
  /** Returns how many more runs the time allows; 0: it is over. */
  readonly runsLeft: () => number;
  /** Returns a number in `[0, 1)`. */
  readonly random?: () => number;
  readonly signal?: AbortSignal;
  /** Called before each run. */
  readonly onRun?: (configuration: Configuration) => void;
}

/** Smallest gain that is worth a change; it exceeds the variation of machines. */
export const minGain = 1.03;
/** Highest probability of adopting a candidate that is no better. */
const maxP = 0.02;
const roundsPerRung = 2;
/** Attempts of a run that fails. */
const maxAttempts = 2;
/** Rise in the share of failed requests that excludes a candidate. */
const maxErrorRise = 0.01;
const maxPairs = 12;
/** Fewer pairs cannot reach `maxP`. */
const minPairs = 6;
/** Gain that one step of cost has to bring, as a logarithm. */
const perCost = 0.01;
/** Ratio below which a candidate is not tried in the next pass. */
const hopeless = 0.9;

export class Search {
  /** The configuration in force: the first one with all adopted changes. */
  best: Configuration;
  readonly trials: Trial[] = [];
  /** Candidates that were skipped for time. */
  readonly skipped: Candidate[] = [];
  /** True: the best of a pass could not be confirmed for lack of time. */
  lacksTime = false;
  readonly #options: SearchOptions;
  readonly #runs = new Map<string, ConfigurationRuns>();

  constructor(base: Configuration, options: SearchOptions) {
    this.best = base;
    this.#options = options;
  }

  /** Configurations in the order of their first run. */
  get measured(): readonly ConfigurationRuns[] {
    return [...this.#runs.values()];
  }

  /** Rejects with `ABORTED`, and with a failure of the configuration in force. */
  async run(candidates: readonly Candidate[]): Promise<void> {
    let open = [...candidates];
    while (open.length > 0) {
      const winner = await this.#pass(open);
      if (winner === undefined) return;
      // Other candidates that were good beside the old base are tried once more, beside the new one.
      open = open
        .filter(
          (each) =>
            each.parameter !== winner.parameter && this.#ratioOf(each, winner.base) > hopeless,
        )
        .sort((a, b) => this.#ratioOf(b, winner.base) - this.#ratioOf(a, winner.base));
    }
  }

  /** Returns the adopted trial, if any. */
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

  /** Compares the best with the base. A failure there proves nothing, so the next best follows. */
  async #meetBest(candidates: readonly Candidate[]): Promise<Trial | undefined> {
    const base = this.best;
    for (const each of candidates) {
      if (!(this.#ratioOf(each, base) >= minGain)) continue;
      const trial = await this.#confirm(each);
      if (trial !== undefined || this.lacksTime) return trial;
    }
    return undefined;
  }

  /** Returns false when time is over: hanging configurations exceed their share. */
  #hasTime(): boolean {
    if (this.#options.runsLeft() > 0) return true;
    this.lacksTime = true;
    return false;
  }

  /** Returns as many of the first candidates as leave time to confirm the best. */
  #affordable(candidates: readonly Candidate[]): readonly Candidate[] {
    const left = this.#options.runsLeft();
    let count = candidates.length;
    while (count > 0 && runsOfHalving(count) + 2 * minPairs > left) count -= 1;
    this.skipped.push(...candidates.slice(count));
    return candidates.slice(0, count);
  }

  /** Returns all remaining ones, best first; `[]` when time ends before the best is known. */
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

  /** Runs each candidate and the base once; returns those that are not excluded. */
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

  /** Returns `undefined` for an excluded configuration. */
  async #score(
    configuration: Configuration,
    candidate: Candidate | undefined,
  ): Promise<number | undefined> {
    const { measure, length, goal, signal, onRun } = this.#options;
    if (signal?.aborted === true) throw abortError(signal);
    const kept = this.#runsOf(configuration);
    // Any run may fail once. A second failure excludes a candidate, and ends the search for the base.
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

  /** Excludes a candidate under which more requests fail than under the base: refusals are fast answers. */
  #failsMore(candidate: Candidate): boolean {
    const kept = this.#runsOf(over(this.best, candidate));
    const [share, before] = [errorShare(kept.runs), errorShare(this.#runsOf(this.best).runs)];
    if (!(share > before + maxErrorRise)) return false;
    const percents = [share, before].map((each) => `${(100 * each).toFixed(1)} %`);
    kept.problem = `${percents[0]} of its requests failed, against ${percents[1]} without it`;
    return true;
  }

  /** Returns `undefined` when the candidate is excluded, or time is over. */
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

  /** Returns the logarithm of the ratio, minus the handicap for cost. */
  #rankOf(candidate: Candidate, base: Configuration): number {
    return Math.log(this.#ratioOf(candidate, base)) - candidate.cost * perCost;
  }

  /** Returns NaN for a candidate that was not measured, or is excluded. */
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

/** Returns the runs of the halving, base included, with one spare run for each rung. */
export function runsOfHalving(candidates: number): number {
  let runs = 0;
  for (let alive = candidates; alive > 0; alive = alive <= 2 ? 0 : Math.ceil(alive / 2)) {
    runs += roundsPerRung * (alive + 1);
  }
  return runs;
}

/** Returns the runs of a whole pass. */
export function runsOfPass(candidates: number): number {
  return runsOfHalving(candidates) + 2 * maxPairs;
}

function over(base: Configuration, { configuration }: Candidate): Configuration {
  return { ...base, ...configuration };
}

/** Returns the share of failed requests, as the median of the runs. */
function errorShare(runs: readonly RunStats[]): number {
  return median(
    runs.map(({ perSecond, errorsPerSecond: errors }) => errors / (perSecond + errors || 1)),
  );
}

function isWin(ratio: number): boolean {
  return ratio > minGain;
}

/** Returns true when the remaining pairs could still adopt it. */
function canWin(ratios: readonly number[], pairs: number): boolean {
  const losses = ratios.filter((ratio) => !isWin(ratio)).length;
  return signTestP(pairs - losses, pairs) <= maxP;
}
