// The configuration of `manycore serve`, read at the start and again at each reload: flags, file, and files with
// environment variables. Not here: which options the new processes get (serve/renewal.ts).

import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { CodedError } from '../../../errors.js';
import {
  change,
  checkReloadAt,
  type Difference,
  nameOfProgram,
  type Renewable,
  type ServeOptions,
  type StartingRenewal,
} from '../../../serve/index.js';
import { checkOptionsAt, inPlace } from './option-place.js';
import type { ServedApp, ServePlan, ServeSettings } from './serve-config.js';

/** Differences that a reload does not apply. */
interface Kept {
  readonly forUpgrade: readonly string[];
  readonly forRestart: readonly string[];
}

export class Configuration {
  /** The plan of the start. */
  readonly plan: ServePlan;
  readonly #read: () => ServePlan;
  /** Flags of Node of this command itself. */
  readonly #execArgv: readonly string[] = [...process.execArgv];
  /** Patterns that had a time to come when they were read first; later they may have none. */
  readonly #patterns = new Set<string | undefined>();
  /** Variables that came from the configuration; those of the command's own environment override them. */
  #variables: ReadonlyMap<string, string> = new Map();

  /** Reads it for the first time. Throws `CLI_FILE_NOT_FOUND`, `OPTION_INVALID`. */
  constructor(read: () => ServePlan) {
    this.#read = read;
    this.plan = read();
    this.#inherit(this.plan.settings, variablesOf(this.plan.settings));
    for (const { place, options } of this.plan.apps) checkOptionsAt(place, options);
  }

  /** Checks for the start what takes a while. Rejects with `OPTION_INVALID`. */
  async checkPatterns(): Promise<void> {
    await this.#checkPatterns(this.plan);
    this.#keepPatterns(this.plan);
  }

  /** Files whose changes change the configuration. */
  get files(): readonly string[] {
    const { file, settings } = this.plan;
    return [...(file === undefined ? [] : [file]), ...settings.envFiles];
  }

  /** Returns what the app with this number is started with; `own` are options of the command. */
  startOf(at: number, own: ServeOptions): Renewable {
    const { app = '', options } = this.plan.apps[at] ?? {};
    return { app, options: { ...own, ...options }, inherited: inheritedNow() };
  }

  /** Reads it again at each reload of an app, and prints the difference; `onRenewed` gets the app. */
  renewalOf(
    at: number,
    own: ServeOptions,
    { name, onRenewed }: { name: () => string; onRenewed: (app: ServedApp) => void },
  ): StartingRenewal {
    let last: { readonly app: ServedApp; readonly kept: Kept } | undefined;
    let applied = this.plan.apps[at];
    return {
      renew: async () => {
        last = await this.#renew(at, own, applied);
        const { app, options } = last.app;
        return { app, options: { ...own, ...options }, inherited: inheritedNow() };
      },
      onRenewed: (difference) => {
        if (last === undefined) return;
        applied = last.app;
        printDifference(name(), difference, last.kept);
        onRenewed(last.app);
      },
    };
  }

  /**
   * Reads and checks everything again. Returns the app with this number, which stays as it was `applied` where the
   * configuration has it no more, and differences that a reload does not apply. Rejects with the errors of a start,
   * with the file, and changes nothing then.
   */
  async #renew(
    at: number,
    own: ServeOptions,
    applied: ServedApp | undefined,
  ): Promise<{ app: ServedApp; kept: Kept }> {
    const plan = this.#readAgain();
    await this.#checkPatterns(plan);
    const before = { env: { ...process.env }, execArgv: process.execArgv, own: this.#variables };
    try {
      this.#inherit(plan.settings, variablesOf(plan.settings));
      for (const { place, options } of plan.apps) checkOptionsAt(place, { ...own, ...options });
    } catch (error) {
      setEnvironment(before.env);
      process.execArgv = before.execArgv;
      this.#variables = before.own;
      throw error;
    }
    this.#keepPatterns(plan);
    const found = this.plan.apps.map((_, each) => sameApp(this.plan.apps, plan.apps, each));
    const app = found[at] ?? applied;
    if (app === undefined) throw new Error(`there is no app ${at}`);
    return { app, kept: keptOf(this.plan, plan, { at, found }) };
  }

  #readAgain(): ServePlan {
    try {
      return this.#read();
    } catch (error) {
      throw inPlace(this.plan.file, error);
    }
  }

  async #checkPatterns({ apps }: ServePlan): Promise<void> {
    for (const { options, place } of apps) {
      const { reloadAt } = options;
      if (this.#patterns.has(reloadAt)) continue;
      const { file, flags, shared, app } = place;
      await checkReloadAt(reloadAt).catch((error: unknown) => {
        if (flags.reloadAt === reloadAt) throw error;
        throw inPlace(file, shared.reloadAt === reloadAt ? error : inPlace(app, error));
      });
    }
  }

  #keepPatterns({ apps }: ServePlan): void {
    for (const { options } of apps) this.#patterns.add(options.reloadAt);
  }

  /** Sets what started processes inherit, and what defaults of options are read from. */
  #inherit({ nodeFlags = [] }: ServeSettings, variables: ReadonlyMap<string, string>): void {
    for (const name of this.#variables.keys()) delete process.env[name];
    const isOurs = ([name]: [string, string]): boolean => process.env[name] === undefined;
    this.#variables = new Map([...variables].filter(isOurs));
    Object.assign(process.env, Object.fromEntries(this.#variables));
    process.execArgv = [...nodeFlags, ...this.#execArgv];
  }
}

function inheritedNow(): Renewable['inherited'] {
  return { env: { ...process.env }, execArgv: [...process.execArgv] };
}

function setEnvironment(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
}

/** Variables of `env` and of the files, which override it; the last file counts. Throws `CLI_FILE_NOT_FOUND`. */
function variablesOf({ env = {}, envFiles }: ServeSettings): ReadonlyMap<string, string> {
  return new Map(Object.entries(Object.assign({ ...env }, ...envFiles.map(readVariables))));
}

/** Reads a file as `node --env-file` does. */
function readVariables(file: string): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(parseEnv(readFileSync(file, 'utf8'))).map(([name, text = '']) => [name, text]),
    );
  } catch (cause) {
    const what = existsSync(file) ? `${file} cannot be read` : `there is no file ${file}`;
    const message = `${what}: give one with variables to --env-file (envFile)`;
    throw new CodedError('CLI_FILE_NOT_FOUND', message, { cause });
  }
}

/** Finds an app by its name; one with a new name by its place, where as many apps are left. */
function sameApp(
  started: readonly ServedApp[],
  apps: readonly ServedApp[],
  at: number,
): ServedApp | undefined {
  const names = started.map(nameOf);
  const byName = apps.find((each) => nameOf(each) === names[at]);
  if (byName !== undefined) return byName;
  const byPlace = apps.length === started.length ? apps[at] : undefined;
  return byPlace !== undefined && names.includes(nameOf(byPlace)) ? undefined : byPlace;
}

function nameOf({ app, options: { name } }: ServedApp): string {
  return name ?? nameOfProgram(app);
}

/** Differences from the start that a running command cannot follow. */
function keptOf(
  started: ServePlan,
  plan: ServePlan,
  { at, found }: { at: number; found: readonly (ServedApp | undefined)[] },
): Kept {
  const commandKeys = ['reloadOnChange', 'metrics', 'affinity'] as const;
  const ofCommand = commandKeys.map((key) => [key, started.settings[key], plan.settings[key]]);
  const before = started.apps[at];
  const appKeys = ['log', 'accessLog'] as const;
  const now = found[at];
  const ofApp = now === undefined ? [] : appKeys.map((key) => [key, before?.[key], now[key]]);
  const isSameSet = plan.apps.length === started.apps.length && !found.includes(undefined);
  const names = [started.apps, isSameSet ? started.apps : plan.apps].map((apps) =>
    apps.map(nameOf).join(' '),
  );
  const changes = (all: readonly (readonly unknown[])[]): string[] =>
    all.flatMap(([key, old, wanted]) =>
      JSON.stringify(old) === JSON.stringify(wanted) ? [] : [change(String(key), old, wanted)],
    );
  return {
    forUpgrade: changes([['apps', ...names], ...ofApp, ...ofCommand]),
    // It belongs to the first process, whose pid it has.
    forRestart: changes([['pidFile', started.settings.pidFile, plan.settings.pidFile]]),
  };
}

/** Prints the difference of a reload, in one line for each kind. */
function printDifference(name: string, { changed, kept }: Difference, ofCommand: Kept): void {
  const forUpgrade = [...kept, ...ofCommand.forUpgrade];
  const { forRestart } = ofCommand;
  if (changed.length > 0) console.log(`${name}: ${changed.join(', ')}`);
  if (forUpgrade.length > 0) {
    console.log(`${name}: only an upgrade or a restart applies ${forUpgrade.join(', ')}`);
  }
  if (forRestart.length > 0)
    console.log(`${name}: only a restart applies ${forRestart.join(', ')}`);
}
