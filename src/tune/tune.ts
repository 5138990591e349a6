// `tune`: from a program and a load to a report. A first run shows that both work, the size of the program,
// and the overhead of a run. The candidates (space.ts) and the length of runs (pace.ts) follow from that;
// then the search decides (search.ts).

import { CodedError, hasCode } from '../errors.js';
import { machineMemoryMb, messageOf } from '../lib/index.js';
import { allowedCores, grantedCores } from '../worker/index.js';
import { asItIs, type Configuration, type Parameter } from './configuration.js';
import { lengthFor } from './load/pace.js';
import { missingMeasure, type RunLength, scoreOf } from './load/run-stats.js';
import { type FilledTuneOptions, fillTuneOptions, type TuneOptions } from './options.js';
import { currentOf, launchOf } from './program/launch.js';
import { type RunResult, runOnce } from './program/program.js';
import { type ProgramNode, programNode } from './program/program-node.js';
import { startOf } from './program/start.js';
import {
  configurationReports,
  reasonOf,
  skippedTexts,
  type TuneReport,
  verdictOf,
} from './report.js';
import { Search } from './search/search.js';
import { type Space, spaceOf } from './search/space.js';

export interface TuneHooks {
  readonly signal: AbortSignal;
  /** Called before the first run, which shows that all works. */
  readonly onBegin?: () => void;
  /** Called before each further run. */
  readonly onRun?: (run: RunNews) => void;
}

export interface RunNews {
  readonly number: number;
  readonly configuration: Configuration;
  readonly length: RunLength;
  readonly secondsLeft: number;
}

/** Factor by which a search may exceed its time to finish a run. */
const slack = 1.1;
const firstLength: RunLength = Object.freeze({ warmUpSeconds: 1, seconds: 1 });

/**
 * Rejects with `OPTION_INVALID`, `CLI_FILE_NOT_FOUND`, and with a failure of the first run: `TUNE_…`,
 * `ABORTED`. A later failure is in the report.
 */
export async function tune(given: TuneOptions, hooks: TuneHooks): Promise<TuneReport> {
  const options = fillTuneOptions(given);
  const tuning = new Tuning(options, hooks);
  return tuning.run();
}

class Tuning {
  readonly #options: FilledTuneOptions;
  readonly #hooks: TuneHooks;
  readonly #begin = performance.now();
  readonly #budgetMs: number;
  readonly #node: ProgramNode;
  #runs = 0;
  /** Average duration of a run. */
  #runMs = 0;

  constructor(options: FilledTuneOptions, hooks: TuneHooks) {
    this.#options = options;
    this.#hooks = hooks;
    this.#budgetMs = options.minutes * 60_000;
    this.#node = programNode(options.program);
  }

  async run(): Promise<TuneReport> {
    const { goal, seconds } = this.#options;
    const given = seconds === undefined ? undefined : { warmUpSeconds: seconds / 2, seconds };
    this.#hooks.onBegin?.();
    const first = await this.#measure(asItIs, given ?? firstLength);
    if (Number.isNaN(scoreOf(first.stats, goal))) throw missingMeasure(goal);
    const space = this.#space(first);
    const left = this.#budgetMs - this.#tookMs;
    const length = given ?? lengthFor(left, space.candidates.length, first.overheadMs);
    this.#runMs = 1000 * (length.warmUpSeconds + length.seconds) + first.overheadMs;
    const search = this.#search(length);
    let problem: CodedError | undefined;
    try {
      await search.run(space.candidates);
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      problem = error;
    }
    const isEmpty = search.measured.every(({ runs }) => runs.length === 0);
    if (problem === undefined && search.lacksTime && isEmpty) throw this.#nothingMeasured();
    return this.#report(search, space, length, problem);
  }

  get #tookMs(): number {
    return performance.now() - this.#begin;
  }

  #nothingMeasured(): CodedError {
    const took = `a first run took ${(this.#tookMs / 1000).toFixed(1)} s`;
    const message = `nothing was measured: ${took}, and ${this.#options.minutes} min leave no time for a search: raise --minutes, or name few things by --only`;
    return new CodedError('OPTION_INVALID', message);
  }

  #search(length: RunLength): Search {
    const { goal } = this.#options;
    const { signal, onRun } = this.#hooks;
    let took = 0;
    let count = 0;
    return new Search(asItIs, {
      goal,
      length,
      signal,
      measure: async (configuration, each) => {
        const from = performance.now();
        try {
          return (await this.#measure(configuration, each)).stats;
        } finally {
          took += performance.now() - from;
          count += 1;
          this.#runMs = took / count;
        }
      },
      runsLeft: () => {
        const left = this.#budgetMs - this.#tookMs;
        const isOver = this.#tookMs > this.#budgetMs * slack;
        return isOver ? 0 : Math.max(1, Math.floor(left / this.#runMs));
      },
      onRun: (configuration) => {
        const secondsLeft = Math.max(0, (this.#budgetMs - this.#tookMs) / 1000);
        onRun?.({ number: this.#runs + 1, configuration, length, secondsLeft });
      },
    });
  }

  async #measure(configuration: Configuration, length: RunLength): Promise<RunResult> {
    const { program, load, url, readyTimeoutMs } = this.#options;
    this.#runs += 1;
    const { signal } = this.#hooks;
    return runOnce({
      launch: launchOf(program, startOf(configuration)),
      load,
      url,
      length,
      readyTimeoutMs,
      signal,
    });
  }

  #space({ stats, hasWorkers }: RunResult): Space {
    const { program, only } = this.#options;
    return spaceOf({
      kind: program.kind,
      current: currentOf(program),
      cores: grantedCores().count,
      allowedCores: allowedCores(),
      defaultHeapMb: this.#node.defaultHeapMb,
      memoryMb: machineMemoryMb(),
      nodeMajor: Number(this.#node.version.split('.')[0]),
      stats,
      hasWorkers,
      only,
    });
  }

  #report(
    search: Search,
    { notTried }: Space,
    { warmUpSeconds, seconds }: RunLength,
    problem: CodedError | undefined,
  ): TuneReport {
    const { programText, loadText, goal, load } = this.#options;
    const unit = load === 'task' ? 'calls' : 'requests';
    const configurations = configurationReports(search, goal);
    const isComplete = problem === undefined;
    const reasons: Partial<Record<Parameter, string>> = {};
    for (const trial of search.trials) {
      if (trial.isAdopted) reasons[trial.parameter] = reasonOf(trial, configurations, goal, unit);
    }
    return {
      program: programText,
      load: loadText,
      goal,
      unit,
      node: this.#node.version,
      cores: grantedCores().count,
      warmUpSeconds,
      seconds,
      tookSeconds: this.#tookMs / 1000,
      isComplete,
      ...(problem !== undefined &&
        !hasCode(problem, 'ABORTED') && {
          problem: { code: problem.code, message: messageOf(problem) },
        }),
      advice: search.best,
      verdict: verdictOf(search, configurations, { goal, unit, isComplete }),
      reasons,
      trials: search.trials,
      configurations,
      notTried,
      skipped: skippedTexts(search.skipped, configurations),
    };
  }
}
