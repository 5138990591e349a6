// Stored results for the page of evidence. A picture leaves out data that is not stored. A sentence cannot,
// so the page has a note that it was not measured.
import { spreadOf } from '../stats.js';
import { formatSpread } from '../table.js';
import type { Measured, Spread } from '../types.js';

export interface StoredResult {
  readonly name: string;
  readonly rounds: number;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly kernel: string;
    readonly node: string;
    readonly commit: string;
    readonly date: string;
  };
  readonly measured: readonly Measured[];
}

/** Thrown for a sentence whose figure is not stored. */
export class NotMeasured extends Error {}

export class Stored {
  readonly #results: ReadonlyMap<string, StoredResult>;

  constructor(results: readonly StoredResult[]) {
    this.#results = new Map(results.map((result) => [result.name, result]));
  }

  contenders(name: string, setting: string): string[] {
    const measured = this.#results.get(name)?.measured ?? [];
    return measured.filter((one) => one.setting === setting).map(({ contender }) => contender);
  }

  settings(name: string): string[] {
    const measured = this.#results.get(name)?.measured ?? [];
    return [...new Set(measured.map(({ setting }) => setting))];
  }

  spread(name: string, setting: string, contender: string, figure: string): Spread | undefined {
    const measured = this.#results.get(name)?.measured ?? [];
    const one = measured.find((each) => each.setting === setting && each.contender === contender);
    return spreadOf(one?.samples[figure]);
  }

  /** `12.3 (11–14)`, for a sentence. Throws `NotMeasured`. */
  text(name: string, setting: string, contender: string, figure: string): string {
    return formatSpread(this.#known(name, setting, contender, figure));
  }

  /** The median alone. Throws `NotMeasured`. */
  median(name: string, setting: string, contender: string, figure: string): number {
    return this.#known(name, setting, contender, figure).median;
  }

  /** Returns a sentence about a rival that is not available everywhere, '' when it has no results. */
  where(name: string, contender: string, sentence: () => string): string {
    const measured = this.#results.get(name)?.measured ?? [];
    return measured.some((one) => one.contender === contender) ? sentence() : '';
  }

  /** Cores of the machine of the case. Throws `NotMeasured`. */
  cores(name: string): number {
    const result = this.#results.get(name);
    if (result === undefined) throw new NotMeasured(name);
    return result.machine.cores;
  }

  /** By the medians: how many times the first the second is, as `2.3`. Throws `NotMeasured`. */
  times(
    name: string,
    figure: string,
    below: readonly [setting: string, contender: string],
    above: readonly [setting: string, contender: string],
  ): string {
    const low = this.#known(name, ...below, figure);
    const high = this.#known(name, ...above, figure);
    return Number((high.median / low.median).toPrecision(2)).toString();
  }

  #known(name: string, setting: string, contender: string, figure: string): Spread {
    const spread = this.spread(name, setting, contender, figure);
    if (spread !== undefined) return spread;
    throw new NotMeasured(`${figure} of ${contender}, ${setting}`);
  }

  /** Returns place and time of the measurement, in a line. */
  madeOn(name: string): string {
    const result = this.#results.get(name);
    if (result === undefined) return 'not measured yet';
    const { cpu, cores, kernel, node, commit, date } = result.machine;
    return `${result.rounds} rounds on ${cpu}, ${cores} cores, ${kernel}, Node ${node}, commit ${commit}, ${date.slice(0, 10)}`;
  }
}
