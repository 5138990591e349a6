// The result of a search as one value, with every number on which the advice rests. As JSON it is the
// report file, and the output of `--json`. Not here: the text for a terminal (cli/).

import { median } from '../lib/index.js';
import { asItIs, type Configuration, configurationText, type Parameter } from './configuration.js';
import { type Goal, type RunStats, scoreOf } from './load/run-stats.js';
import {
  type Candidate,
  type ConfigurationRuns,
  minGain,
  type Search,
  type Trial,
} from './search/search.js';
import type { NotTried } from './search/space.js';
import { spread } from './search/statistics.js';

export interface TuneReport {
  readonly program: string;
  readonly load: string;
  readonly goal: Goal;
  /** Unit of the counts. */
  readonly unit: 'requests' | 'calls';
  /** Version of the program's Node. */
  readonly node: string;
  readonly cores: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  readonly tookSeconds: number;
  /** True: the search was completed. */
  readonly isComplete: boolean;
  /** The failure that ended the search. */
  readonly problem?: { readonly code: string; readonly message: string };
  /** Parameters to set; `{}`: leave it as it is. */
  readonly advice: Configuration;
  /** The advice in one sentence. */
  readonly verdict: string;
  /** Reason for each parameter of the advice. */
  readonly reasons: Readonly<Partial<Record<Parameter, string>>>;
  readonly trials: readonly Trial[];
  readonly configurations: readonly ConfigurationReport[];
  readonly notTried: readonly NotTried[];
  /** Configurations that were skipped for time. */
  readonly skipped: readonly string[];
}

/** Medians of the runs of a configuration. */
export interface ConfigurationReport extends Partial<RunStats> {
  readonly configuration: Configuration;
  readonly text: string;
  readonly runs: number;
  /** Interquartile range of the goal's value, divided by its median. */
  readonly spread?: number;
  /** Ratio of the goal to the configuration in force when it was tried; above 1 is better. */
  readonly ratio?: number;
  /** Reason for its exclusion. */
  readonly problem?: string;
}

/** Returns the present configuration first, then the best, and excluded ones last. */
export function configurationReports(search: Search, goal: Goal): ConfigurationReport[] {
  return search.measured
    .filter(({ runs, problem }) => runs.length > 0 || problem !== undefined)
    .map((each) => configurationReport(each, goal))
    .sort((a, b) => placeOf(b) - placeOf(a));
}

function placeOf({ configuration, ratio = 1, problem }: ConfigurationReport): number {
  if (configurationText(configuration) === configurationText(asItIs)) return Infinity;
  return problem === undefined ? ratio : 0;
}

function configurationReport(
  { configuration, runs, ratios, problem }: ConfigurationRuns,
  goal: Goal,
): ConfigurationReport {
  const of = (pick: (stats: RunStats) => number | undefined): number | undefined => {
    const values = runs.map(pick).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : median(values);
  };
  const scores = runs.map((stats) => scoreOf(stats, goal));
  const perSecond = of((each) => each.perSecond);
  return {
    configuration,
    text: configurationText(configuration),
    runs: runs.length,
    ...(perSecond !== undefined && { perSecond }),
    ...(runs.length > 1 && { spread: spread(scores) }),
    errorsPerSecond: of((each) => each.errorsPerSecond) ?? 0,
    p50Ms: of((each) => each.p50Ms),
    p99Ms: of((each) => each.p99Ms),
    memoryMiB: of((each) => each.memoryMiB),
    cpuCores: of((each) => each.cpuCores),
    ...(ratios.length > 0 && { ratio: median(ratios) }),
    ...(problem !== undefined && { problem }),
  };
}

/** Returns the goal in words. */
function goalText(goal: Goal, unit: string): string {
  if (goal === 'p99') return 'speed at the 99th percentile';
  return goal === 'cpu' ? `${unit} per CPU second` : `${unit} per second`;
}

const percent = `${Math.round((minGain - 1) * 100)} %`;

/** Returns the reason for an adopted configuration. */
export function reasonOf(
  trial: Trial,
  configurations: readonly ConfigurationReport[],
  goal: Goal,
  unit: string,
): string {
  const { ratio, low, high, pairs, wins } = trial;
  const how =
    `${ratio.toFixed(2)} times the ${goalText(goal, unit)} (${low.toFixed(2)} to ${high.toFixed(2)} ` +
    `in the middle half of ${pairs} pairs of runs, ${wins} of them better by more than ${percent})`;
  const find = (configuration: Configuration): ConfigurationReport | undefined =>
    configurations.find(({ text }) => text === configurationText(configuration));
  const [before, after] = [find(trial.base), find(trial.configuration)];
  const from = (
    name: string,
    pick: (report: ConfigurationReport) => number | undefined,
  ): string[] => {
    const [old, now] = [before && pick(before), after && pick(after)];
    if (old === undefined || now === undefined) return [];
    return [`${name.replace('#', numberText(old)).replace('#', numberText(now))}`];
  };
  const stats = [
    ...from(`from # to # ${unit}/s`, (each) => each.perSecond),
    ...from('p99 from # to # ms', (each) => each.p99Ms),
    ...from('memory from # to # MiB', (each) => each.memoryMiB),
    ...from('CPU from # to # cores', (each) => each.cpuCores),
  ];
  return [how, ...stats].join('; ');
}

/** Returns three significant digits, with separated thousands. */
export function numberText(value: number): string {
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.max(value, 0.01))));
  const fixed = value.toFixed(Math.min(2, digits));
  return value >= 1000 ? Math.round(value).toLocaleString('en') : fixed;
}

/** Returns advice and reason in one sentence. */
export function verdictOf(
  search: Search,
  configurations: readonly ConfigurationReport[],
  { goal, unit, isComplete }: { goal: Goal; unit: string; isComplete: boolean },
): string {
  if (configurationText(search.best) !== configurationText(asItIs)) {
    const adopted = search.trials.filter(({ isAdopted }) => isAdopted);
    const gain = adopted.reduce((product, { ratio }) => product * ratio, 1);
    const rest = isComplete ? '' : ' so far: the search was not over';
    return `Set ${configurationText(search.best)}: ${gain.toFixed(2)} times the ${goalText(goal, unit)}${rest}.`;
  }
  if (!isComplete) return 'No advice: the search was not over.';
  return `Leave it as it is: ${whyNot(search, configurations)}.`;
}

function whyNot(search: Search, configurations: readonly ConfigurationReport[]): string {
  const last = search.trials.at(-1);
  if (last !== undefined) {
    const { configuration, wins, pairs, isDecided } = last;
    const how = `better by more than ${percent} in only ${wins} of ${pairs} pairs of runs`;
    const end = isDecided ? 'which is within noise' : `and ${noTime}`;
    return `${configurationText(configuration)} seemed best, but was ${how}, ${end}`;
  }
  const out = configurations.filter(({ problem }) => problem !== undefined);
  const tried = configurations.filter(
    ({ ratio, problem }) => ratio !== undefined && problem === undefined,
  );
  const [first, ...others] = tried;
  if (first === undefined) {
    if (search.lacksTime) return noTime;
    return out.length === 0 ? 'there are no other candidates' : 'all candidates are excluded';
  }
  const best = others.reduce((a, b) => ((b.ratio ?? 0) > (a.ratio ?? 0) ? b : a), first);
  const times = `${(best.ratio ?? 0).toFixed(2)} times`;
  if (search.lacksTime) return `${best.text} seemed best (${times}), and ${noTime}`;
  const rest =
    out.length === 0 ? '' : `, and ${out.length} more ${out.length === 1 ? 'is' : 'are'} excluded`;
  return `of ${tried.length} configurations none was better by more than ${percent} (the best, ${best.text}: ${times})${rest}`;
}

const noTime = 'there was no time for more runs: raise --minutes';

/**
 * Returns what was never tried for lack of time; a second try beside another configuration does not count.
 */
export function skippedTexts(
  skipped: readonly Candidate[],
  configurations: readonly ConfigurationReport[],
): string[] {
  const texts = new Set(skipped.map(({ configuration }) => configurationText(configuration)));
  return [...texts].filter((each) => !configurations.some(({ text }) => text === each));
}
