// Translates an ecosystem file of PM2 to the content of manycore.config.json. Each key of an app becomes keys of the
// configuration, or a note with the way out. A translated value that the reader of configurations would refuse is
// a note, too. Names of keys and ways out are in pm2-keys.ts. Not here: reading the file (pm2-file.ts).

import { homedir } from 'node:os';
import { basename, extname, isAbsolute, join, relative, resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import { messageOf } from '../../../lib/index.js';
import { nameOfProgram } from '../../../serve/index.js';
import { checkContent } from '../serve/serve-config.js';
import { aliases, ignored, ofPm2, oneLog, waysOut } from './pm2-keys.js';

export type Fields = Readonly<Record<string, unknown>>;

export interface Pm2Options {
  /** Folder of the file; paths of the configuration are relative to it. */
  readonly folder: string;
  /** Name of an environment: `env_NAME` of each app counts. */
  readonly env?: string | undefined;
  /** Name of the one app to translate. */
  readonly only?: string | undefined;
}

export interface Translation {
  /** `undefined`: no app can be served. */
  readonly config: Fields | undefined;
  /** One line for each key that is left out. */
  readonly notes: readonly string[];
}

interface App {
  readonly name: string;
  /** Folder against which its paths are. */
  readonly cwd: string;
  /** Values by the names of PM2's documentation. */
  readonly keys: ReadonlyMap<string, unknown>;
  readonly at: (path: string) => string;
  readonly env: Fields;
  readonly note: (key: string, wayOut: string) => void;
}

/** Keys of a configuration, or the way out. */
type Outcome = Fields | string;

/** Keys that others read: the sizes, the log, the environment. */
const readElsewhere: ReadonlySet<string> = new Set([
  ...['script', 'interpreter', 'instances', 'exec_mode', 'env', 'port'],
  ...['out_file', 'error_file', 'log_file', 'merge_logs', 'log_type', 'time'],
]);

const translations: Readonly<Record<string, (value: unknown, app: App) => Outcome>> = {
  name: (name) => ({ name }),
  args: (args) => listOf('args', args),
  max_memory_restart: bytesOf,
  kill_timeout: (ms) => ({ drainTimeoutMs: numberOf(ms) }),
  listen_timeout: (ms) => ({ startTimeoutMs: numberOf(ms) }),
  cron_restart: (pattern) => (Number(pattern) === 0 ? {} : { reloadAt: pattern }), // 0: never
  max_restarts: (count) => ({ maxFailures: Math.max(1, Number(count)) }),
  node_args: (args) => listOf('nodeFlags', args),
  source_map_support: (is) => (is === true ? { nodeFlags: ['--enable-source-maps'] } : {}),
  uid: (user) => ({ user }),
  gid: (group) => ({ group }),
  pid_file: (path, { at }) => (typeof path === 'string' ? { pidFile: at(path) } : 'give a path'),
  watch: (what) => {
    if (what === true) return { reloadOnChange: true };
    return 'give reloadOnChange, which watches the folder of the program';
  },
  cwd: (_, { cwd, at }) =>
    at('.') === '.' ? {} : `start the command in ${cwd} (WorkingDirectory= of systemd)`,
  instance_var: (name) =>
    name === 'NODE_APP_INSTANCE' ? {} : 'the number of a loop is in NODE_APP_INSTANCE',
};

/** Translates what a file exports. Throws `OPTION_INVALID` for content that is no ecosystem file. */
export function fromPm2(content: unknown, options: Pm2Options): Translation {
  const notes: string[] = [];
  const { apps, hasDeploy } = appsIn(content);
  if (hasDeploy) notes.push(`deploy is left out: ${waysOut['deploy']}`);
  const named = apps.map((app) => appOf(app, options, notes));
  const chosen = named.filter(({ name }) => options.only === undefined || name === options.only);
  if (chosen.length === 0) {
    throw invalid(
      `there is no app ${options.only}: there are ${listed(named.map((app) => app.name))}`,
    );
  }
  checkEnvironment(apps, options.env);
  const translated = chosen.flatMap((app) => translate(app) ?? []);
  const [first, ...others] = translated;
  if (first === undefined) return { config: undefined, notes };
  if (others.length === 0) return { config: first.config, notes };
  return { config: joined(translated), notes };
}

function appsIn(content: unknown): { apps: Fields[]; hasDeploy: boolean } {
  const whole: Fields = Object(content);
  const given = whole['apps'] ?? whole['services'] ?? whole['pm2'] ?? content;
  const apps: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (apps.length === 0) throw invalid('it has no apps: give the file that pm2 start reads');
  return { apps: apps.map(checkedApp), hasDeploy: given !== content && 'deploy' in whole };
}

function checkedApp(app: unknown, at: number): Fields {
  const fields: Fields = Object(app);
  if (typeof (fields['script'] ?? fields['exec']) === 'string') return fields;
  throw invalid(`apps[${at}] has no script: give it the path of the program`);
}

function checkEnvironment(apps: readonly Fields[], env: string | undefined): void {
  const names = new Set(apps.flatMap((app) => Object.keys(app).flatMap((key) => envOf(key) ?? [])));
  if (env === undefined || names.has(env)) return;
  throw invalid(
    `no app has env_${env}: there is ${listed([...names].map((name) => `env_${name}`))}`,
  );
}

/** The name of the environment in a key as `env_production`. */
function envOf(key: string): string | undefined {
  return /^env_(\S+)$/.exec(key)?.[1];
}

function appOf(fields: Fields, { folder, env: chosen }: Pm2Options, notes: string[]): App {
  const keys = new Map<string, unknown>();
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined || envOf(key) !== undefined) continue;
    const snake = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    keys.set(Object.hasOwn(aliases, snake) ? (aliases[snake] ?? snake) : snake, value);
  }
  const cwd = resolve(folder, home(String(keys.get('cwd') ?? '.')));
  const at = (path: string): string => {
    const full = resolve(cwd, home(path));
    const short = relative(folder, full);
    return short.startsWith('..') || isAbsolute(short) ? full : short || '.';
  };
  const script = resolve(cwd, home(String(keys.get('script'))));
  const name = String(keys.get('name') ?? nameOfProgram(script));
  const note = (key: string, wayOut: string): void => {
    notes.push(`${name}: ${key} is left out: ${wayOut}`);
  };
  if (chosen === undefined) {
    for (const key of Object.keys(fields)) {
      const other = envOf(key);
      if (other !== undefined) note(key, `choose it with --env ${other}`);
    }
  }
  const sets = ['env', `env_${chosen}`].map((key) => [key, fields[key]] as const);
  for (const [key, set] of sets) {
    if (set !== undefined && !isFields(set)) note(key, 'give an object, or envFile');
  }
  const env: Fields = Object.assign({}, ...sets.map(([, set]) => (isFields(set) ? set : {})));
  return { name, cwd, keys, at, env, note };
}

interface Translated {
  readonly app: App;
  readonly config: Fields;
}

/** `undefined`: no program of Node, which has a note. */
function translate(app: App): Translated | undefined {
  const config: Record<string, unknown> = { app: app.at(String(app.keys.get('script'))) };
  const otherProgram = whyNotNode(app);
  if (otherProgram !== undefined) {
    app.note('the app', otherProgram);
    return undefined;
  }
  const add = (key: string, outcome: Outcome): void => {
    const wayOut = typeof outcome === 'string' ? outcome : problemOf(outcome);
    if (wayOut !== undefined) app.note(key, wayOut);
    else
      for (const [name, value] of Object.entries(outcome)) config[name] = both(config[name], value);
  };
  add('interpreter', interpreterOf(app));
  add('instances', sizesOf(app));
  for (const [key, value] of app.keys) {
    if (!readElsewhere.has(key)) add(key, outcomeOf(key, value, app));
  }
  add('log', logOf(app));
  addEnvironment(app, add);
  return { app, config };
}

function outcomeOf(key: string, value: unknown, app: App): Outcome {
  if (Object.hasOwn(translations, key) && value !== false) {
    return translations[key]?.(value, app) ?? {};
  }
  const usual = key === 'autorestart';
  if (value === usual || value === null || Object.hasOwn(translations, key)) return {};
  if (ignored.has(key)) return ofPm2;
  if (Object.hasOwn(waysOut, key)) return waysOut[key] ?? '';
  return 'neither PM2 nor manycore has such a key';
}

/** Joins lists, as those of flags; another value replaces. */
function both(before: unknown, value: unknown): unknown {
  return Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
}

/** The message of the reader of configurations; `undefined`: it accepts the keys. */
function problemOf(keys: Fields): string | undefined {
  try {
    checkContent(keys);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

const otherLanguages: ReadonlySet<string> = new Set(
  '.py .sh .rb .php .pl .coffee .ls .lua .jar'.split(' '),
);
const launchers: ReadonlySet<string> = new Set('npm npx yarn pnpm bun bash sh deno'.split(' '));
const compilers: ReadonlySet<string> = new Set(['tsx', 'ts-node']);

function whyNotNode({ keys }: App): string | undefined {
  const script = String(keys.get('script'));
  if (launchers.has(script)) return `${script} starts another program: give that as script`;
  const interpreter = keys.get('interpreter');
  const name = basename(String(interpreter ?? 'node'));
  const isOfNode = /^node(js)?(@|$)/.test(name) || compilers.has(name);
  const isKnown = interpreter !== undefined || !otherLanguages.has(extname(script));
  if (isOfNode && isKnown) return undefined;
  const what = interpreter === undefined ? script : `under ${name} it`;
  return `${what} is no program of Node: write a unit of systemd for it`;
}

function interpreterOf({ keys }: App): Outcome {
  const given = String(keys.get('interpreter') ?? 'node');
  if (given === 'node') return {};
  if (compilers.has(basename(given))) {
    return 'Node runs TypeScript from 22.18 on; else give "nodeFlags": ["--import", "tsx"]';
  }
  return `start the command with ${given}: its Node runs the processes, too`;
}

/** Sizes also for an app without them: PM2 starts one process. */
function sizesOf({ keys, note }: App): Outcome {
  const mode = String(keys.get('exec_mode') ?? '');
  const given = keys.get('instances') ?? 1;
  const one = { processes: 1, loops: 1 };
  if (given === 'max') return {};
  const count = numberOf(given);
  if (typeof count !== 'number') {
    return 'give a number of processes; without them the server follows the cores';
  }
  if (count === 0) return {};
  if (count < 0)
    return 'give a number of processes, or set MANYCORE_CORES to the cores to count on';
  if (count > 1 && mode.startsWith('fork')) {
    note(
      'instances',
      'give each copy an app with a port, or let loops share one (exec_mode cluster)',
    );
    return one;
  }
  return { ...one, processes: count };
}

const nowhere: ReadonlySet<unknown> = new Set(['/dev/null', 'NULL', 'null']);

function logOf({ keys, at, note }: App): Outcome {
  const names = ['log_file', 'out_file', 'error_file'].filter((key) => keys.has(key));
  const files = names.flatMap((key) => {
    const path = keys.get(key);
    if (typeof path === 'string' && !nowhere.has(path)) return [{ key, path: at(path) }];
    if (path !== false) note(key, nowhere.has(path) ? `${waysOut['disable_logs']}` : 'give a path');
    return [];
  });
  const [first, ...others] = files;
  for (const { key, path } of others) if (path !== first?.path) note(key, oneLog);
  if (keys.get('merge_logs') === false && first !== undefined) {
    note('merge_logs', 'all loops have one log, and each line says which');
  }
  const isJson = keys.get('log_type') === 'json';
  if (keys.has('log_type') && !isJson) note('log_type', 'formats of a log are text and json');
  const hasTime = keys.get('time') === true || keys.has('log_date_format');
  if (first === undefined && !isJson && !hasTime) return {};
  const file = first && { file: first.path };
  return { log: { ...file, ...(isJson ? { format: 'json' } : !file && { format: 'text' }) } };
}

/** Adds variables, and the port: each app has one of its own. */
function addEnvironment({ keys, env }: App, add: (key: string, outcome: Outcome) => void): void {
  const { PORT: port, ...others } = env;
  const given = keys.get('port') ?? port;
  const number = numberOf(given);
  if (typeof number === 'number') add('port', { port: number });
  else if (given !== undefined) Object.assign(others, { PORT: given });
  const entries = Object.entries(others).filter(([, value]) => value !== undefined);
  const texts: Record<string, string> = {};
  for (const [name, value] of entries) {
    if (typeof value === 'object') add(`env.${name}`, 'give a text');
    else texts[name] = String(value);
  }
  if (Object.keys(texts).length > 0) add('env', { env: texts });
}

/** Keys that belong to the whole command. */
const shared = ['env', 'nodeFlags', 'reloadOnChange', 'pidFile'] as const;

/** One configuration for several apps. What they share counts only where all have the same. */
function joined(all: readonly Translated[]): Fields {
  const common: Record<string, unknown> = {};
  for (const key of shared) {
    const parts = all.map(({ config }) => config[key]);
    if (key === 'env') common[key] = commonVariables(all);
    else if (parts.every((part) => JSON.stringify(part) === JSON.stringify(parts[0]))) {
      common[key] = parts[0];
    } else {
      for (const { app, config } of all) {
        if (config[key] !== undefined) app.note(key, `all apps share it; ${alone(app)}`);
      }
    }
  }
  const apps = withNames(all).map(
    ({ config: { env, nodeFlags, reloadOnChange, pidFile, ...own } }) => own,
  );
  return { ...common, apps };
}

/** Numbers the apps whose name another one has. */
function withNames(all: readonly Translated[]): Translated[] {
  const names = new Set(all.map(({ app }) => app.name));
  const seen = new Set<string>();
  return all.map(({ app, config }) => {
    const isFirst = !seen.has(app.name);
    seen.add(app.name);
    if (isFirst) return { app, config };
    let number = 2;
    while (names.has(`${app.name}-${number}`)) number += 1;
    const name = `${app.name}-${number}`;
    names.add(name);
    app.note('name', `another app has it, so this one is ${name}`);
    return { app, config: { ...config, name } };
  });
}

function commonVariables(all: readonly Translated[]): Fields | undefined {
  const sets: Fields[] = all.map(({ config }) => Object(config['env']));
  const common: Record<string, unknown> = {};
  all.forEach(({ app }, at) => {
    for (const [name, value] of Object.entries(sets[at] ?? {})) {
      if (sets.every((set) => set[name] === value)) common[name] = value;
      else app.note(`env.${name}`, `all apps share their environment; ${alone(app)}`);
    }
  });
  return Object.keys(common).length > 0 ? common : undefined;
}

function alone({ name }: App): string {
  return `print a configuration for this app alone with --only ${name}`;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A number, also from a text of one; else the value itself. */
function numberOf(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
}

const units: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };

function bytesOf(size: unknown): Outcome {
  const [, count, unit = ''] = /^(\d+)([KMG]?)B?$/i.exec(String(size)) ?? [];
  if (count === undefined) return 'give maxRssBytes a number of bytes';
  return { maxRssBytes: Number(count) * (units[unit.toUpperCase()] ?? 1) };
}

/** Words of a text as a shell has them, or the array itself. */
function listOf(key: string, given: unknown): Outcome {
  if (Array.isArray(given)) return { [key]: given.map(String) };
  if (typeof given !== 'string') return `give ${key} an array of texts`;
  const words = given.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];
  return { [key]: words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2')) };
}

function home(path: string): string {
  return path.startsWith('~') ? join(homedir(), path.slice(1)) : path;
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}

function invalid(message: string): CodedError {
  return new CodedError('OPTION_INVALID', message);
}
