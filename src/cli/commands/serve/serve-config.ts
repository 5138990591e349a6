// Plan of `manycore serve`, from its flags and a configuration file, whose keys are the options of `serve`
// and of the command. A flag overrides the file.
// Long (over 400 lines), because each key has its type, its check, and its place in the plan here.

import { existsSync, readFileSync, type Stats, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import { foldersApp } from '../../../http-apps/index.js';
import { integer, invalid, messageOf, ownOptions, string, strings } from '../../../lib/index.js';
import type { EndpointOptions } from '../../../observe/index.js';
import {
  type AccessFormat,
  accessFormats,
  nameOfProgram,
  type ServeOptions,
  serveOptionNames,
  type TlsOptions,
} from '../../../serve/index.js';
import type { StartConfig } from '../../../tune/index.js';
import type { AccessLogOptions, LogFormat, LogOptions } from './log.js';
import { checkOptionsAt, inPlace, type OptionPlace } from './option-place.js';

/** One app to serve. */
export interface ServedApp {
  /** Path of the program. */
  readonly app: string;
  /** Folder whose changes reload the app; `undefined` for folders of files and CGI programs. */
  readonly folder: string | undefined;
  readonly options: ServeOptions;
  readonly place: OptionPlace;
  /** `undefined`: its output is that of the command. */
  readonly log: LogOptions | undefined;
  /** `undefined`: there is none. */
  readonly accessLog: AccessLogOptions | undefined;
}

/** Options of the whole command. */
export interface ServeSettings extends ProcessSettings {
  readonly pidFile?: string | undefined;
  readonly reloadOnChange?: boolean | undefined;
  /** Files with environment variables; of a name in several, the last one counts. */
  readonly envFiles: readonly string[];
  /** Endpoint for Prometheus: a port on loopback, or port and host. */
  readonly metrics?: number | EndpointOptions | undefined;
}

/** Options for starting the processes of all apps; `manycore tune` writes such. */
interface ProcessSettings {
  /** Environment variables; those of the command itself override them. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Flags of Node, before those of the command itself. */
  readonly nodeFlags?: readonly string[] | undefined;
  /** Numbers of the cores that they may run on. */
  readonly affinity?: readonly number[] | undefined;
}

/** Keys of an app in a configuration, besides options. */
interface AppConfig extends Omit<ServeOptions, 'onOutput' | 'accessLog'> {
  readonly app?: string;
  /** The way of what it prints. */
  readonly log?: LogOptions;
  /** The file with a line for each request. */
  readonly accessLog?: AccessLogOptions;
  /** Folder of files to serve instead of a program. */
  readonly static?: string;
  /** False: loops answer all requests for files of `static`. */
  readonly fileThread?: boolean;
  /** Folder of CGI programs to run under /cgi-bin/. */
  readonly cgi?: string;
}

export interface ServeFlags
  extends Omit<AppConfig, 'log' | 'accessLog'>,
    Omit<ServeSettings, 'envFiles'> {
  readonly envFile?: readonly string[];
  readonly log?: string;
  readonly logFormat?: LogFormat;
  readonly logMaxMb?: number;
  readonly logKeep?: number;
  readonly accessLog?: string;
  readonly accessLogFormat?: AccessFormat;
  readonly config?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly http2?: boolean;
}

interface Config extends AppConfig, Omit<ServeSettings, 'envFiles'> {
  /** File with environment variables. */
  readonly envFile?: string;
  /** Several apps, each with its own options, which override those beside `apps`. */
  readonly apps?: readonly AppConfig[];
  /** Reasons of `manycore tune` for its values; ignored. */
  readonly reasons?: unknown;
}

const appOnlyKeys: Readonly<Record<Exclude<keyof AppConfig, keyof ServeOptions>, true>> = {
  app: true,
  static: true,
  fileThread: true,
  cgi: true,
  log: true,
};
const commandKeys: Readonly<Record<Exclude<keyof Config, keyof AppConfig>, true>> = {
  apps: true,
  pidFile: true,
  reloadOnChange: true,
  envFile: true,
  metrics: true,
  env: true,
  nodeFlags: true,
  affinity: true,
  reasons: true,
};
const optionNames = serveOptionNames.filter((name) => name !== 'onOutput');
const appKeys: ReadonlySet<string> = new Set([...Object.keys(appOnlyKeys), ...optionNames]);
const configKeys: ReadonlySet<string> = new Set([...appKeys, ...Object.keys(commandKeys)]);

const defaultConfig = 'manycore.config.json';

export interface ServePlan {
  readonly apps: readonly ServedApp[];
  readonly settings: ServeSettings;
  /** Path of the configuration; `undefined`: there is none. */
  readonly file: string | undefined;
}

/** Combines flags and configuration. Throws `CLI_FILE_NOT_FOUND`, `OPTION_INVALID`. */
export function servePlan(
  app: string | undefined,
  args: readonly string[],
  flags: ServeFlags,
): ServePlan {
  const { config: configPath, tlsCert, tlsKey, http2, ...others } = flags;
  const { log: logFile, logFormat, logMaxMb, logKeep, ...unlogged } = others;
  const { accessLog: accessFile, accessLogFormat, ...rest } = unlogged;
  const { pidFile: ownPidFile, reloadOnChange: ownReload, metrics: ownMetrics, ...other } = rest;
  const { envFile: ownEnvFiles = [], rescue, fileThread, ...given } = other;
  const isNamed = app !== undefined || given.static !== undefined || given.cgi !== undefined;
  const config = readConfig(configPath, isNamed);
  const { apps = [{}], pidFile, reloadOnChange, metrics, reasons: _, ...settings } = config.content;
  const { envFile, env, nodeFlags, affinity, ...shared } = settings;
  if (apps.length === 0) throw nothingToServe(config.file);
  for (const name of ['status', 'health'] as const) {
    if (apps.length < 2 || (shared[name] ?? given[name]) === undefined) continue;
    throw new CodedError(
      'OPTION_INVALID',
      `each of several apps has a ${name} of its own: give each a port in apps`,
    );
  }
  const tls = tlsOf(tlsCert, tlsKey, http2);
  const log = logOf({ file: logFile, format: logFormat, maxMb: logMaxMb, keep: logKeep });
  const accessLog = accessLogOf(accessFile, accessLogFormat);
  const own: AppConfig = {
    ...given,
    ...(app !== undefined && { app, args }),
    ...(tls !== undefined && { tls }),
    ...(log !== undefined && { log }),
    ...(accessLog !== undefined && { accessLog }),
    // Both flags can only say no: without one, the file decides.
    ...(rescue === false && { rescue }),
    ...(fileThread === false && { fileThread }),
  };
  if (own.name !== undefined && apps.length > 1) {
    const message = `--name ${own.name} is for one app: give each of several a name in ${config.file}`;
    throw new CodedError('OPTION_INVALID', message);
  }
  const atHome = (each: AppConfig): AppConfig => atFolder(withoutLimit(each), config.folder);
  const configured = apps.map((each) => ({ ...atHome({ ...shared, ...each }), ...own }));
  checkNames(configured, config.file);
  const places = { file: config.file, flags: optionsIn(own), shared: optionsIn(atHome(shared)) };
  return {
    apps: configured.map((each, at) => {
      const app = apps.length === 1 ? undefined : `apps[${at}] (${nameIn(each)})`;
      try {
        return appOf(each, { ...places, app });
      } catch (error) {
        throw inPlace(app === undefined ? undefined : config.file, inPlace(app, error));
      }
    }),
    settings: {
      pidFile: ownPidFile ?? (pidFile && resolve(config.folder, pidFile)),
      reloadOnChange: ownReload ?? reloadOnChange,
      metrics: ownMetrics ?? metrics,
      envFiles: [
        ...(envFile === undefined ? [] : [resolve(config.folder, envFile)]),
        ...ownEnvFiles.map((file) => resolve(file)),
      ],
      env,
      nodeFlags,
      affinity,
    },
    file: config.file,
  };
}

function readConfig(
  path: string | undefined,
  isNamed: boolean,
): { content: Config; folder: string; file?: string } {
  const file = resolve(path ?? defaultConfig);
  // A default file in this folder is not for an app named on the command line.
  if (path === undefined && (isNamed || !existsSync(file))) {
    return { content: {}, folder: process.cwd() };
  }
  try {
    const content: unknown = JSON.parse(readFileSync(file, 'utf8'));
    checkConfig(content, 'a configuration', configKeys);
    return { content, folder: dirname(file), file };
  } catch (cause) {
    const message = `${file} cannot be read as a configuration: ${messageOf(cause)}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
}

/**
 * Reads from a configuration how programs are started, for a program that `manycore serve` does not start.
 * Throws `OPTION_INVALID` for a file that `manycore serve` would reject, too.
 */
export function startConfig(path: string): StartConfig {
  const { content, folder, file = path } = readConfig(path, true);
  const { apps = [], env = {}, nodeFlags = [], affinity = [], ...shared } = content;
  try {
    checkAllOptions(content);
  } catch (error) {
    throw inPlace(file, error);
  }
  checkNames(
    apps.map((each) => atFolder({ ...shared, ...each }, folder)),
    file,
  );
  const programs = [shared, ...apps].map(({ app }) => app).filter((app) => app !== undefined);
  const { processes, loops } = shared;
  const names = programs.map((app) => resolve(folder, app));
  return { file, apps: names, env, nodeFlags, affinity, processes, loops };
}

/** Checks the content of a file. Throws `OPTION_INVALID` where `manycore serve` would, too. */
export function checkContent(content: unknown): void {
  checkConfig(content, 'a configuration', configKeys);
  checkAllOptions(content);
}

function checkAllOptions(content: Config): void {
  const { apps = [], env: _, nodeFlags: __, affinity: ___, ...shared } = content;
  const place = { file: undefined, app: undefined, flags: {}, shared: checkedHere(shared) };
  checkOptionsAt(place, checkedHere(shared));
  for (const [at, each] of apps.entries()) {
    checkOptionsAt({ ...place, app: `apps[${at}]` }, checkedHere({ ...shared, ...each }));
  }
}

/** Returns the options without user, group and certificates, which only `serve` can check. */
function checkedHere(config: Omit<Config, 'apps' | keyof ProcessSettings>): ServeOptions {
  const { envFile, pidFile, reloadOnChange, metrics, reasons, ...app } = config;
  const options = optionsIn(withoutLimit(app));
  return { ...options, tls: undefined, user: undefined, group: undefined };
}

/** Returns the options of `serve` in an entry. */
function optionsIn(config: AppConfig): ServeOptions {
  const { app, static: files, fileThread, cgi, log, accessLog, ...options } = config;
  return options;
}

/** Returns the name of an app, whose paths are absolute; `undefined`: it has nothing to serve. */
function nameIn({ name, app, static: files, cgi }: AppConfig): string | undefined {
  const folder = files ?? cgi;
  const path = app ?? (folder && join(folder, 'index'));
  return name ?? (path && nameOfProgram(path));
}

/** Checks that commands reach each app by its name. Throws `OPTION_INVALID`. */
function checkNames(apps: readonly AppConfig[], file: string | undefined): void {
  const names = apps.map(nameIn);
  for (const [at, name] of names.entries()) {
    const first = names.indexOf(name);
    if (first === at || name === undefined) continue;
    const both = `apps[${first}] and apps[${at}] are both called ${name}`;
    const message = `${both}: give each a name of its own, as "name": "${name}-2"`;
    throw inPlace(file, new CodedError('OPTION_INVALID', message));
  }
}

const paths = ['app', 'static', 'cgi', 'unix', 'pidFile', 'envFile', 'cert', 'key'];

/** Checks the keys that are used before `serve` checks its options. Throws `OPTION_INVALID`. */
function checkConfig(
  content: unknown,
  what: string,
  keys: ReadonlySet<string>,
): asserts content is Config {
  if (!isObject(content)) throw invalid('it', content, 'an object');
  ownOptions(what, content, keys);
  const { apps = [], tls = {}, log = {}, accessLog, reloadOnChange = false, metrics = 0 } = content;
  if (!isObject(log)) throw invalid('log', log, 'an object');
  checkLog(log);
  if (accessLog !== undefined) {
    if (!isObject(accessLog)) throw invalid('accessLog', accessLog, 'an object');
    checkAccessLog(accessLog);
  }
  if (!isObject(tls)) throw invalid('tls', tls, 'an object');
  for (const [name, value] of Object.entries({ ...tls, ...content })) {
    if (paths.includes(name)) string(name, value, 'a path');
  }
  const { fileThread = true } = content;
  if (typeof fileThread !== 'boolean') throw invalid('fileThread', fileThread, 'true or false');
  if (typeof reloadOnChange !== 'boolean') {
    throw invalid('reloadOnChange', reloadOnChange, 'true or false');
  }
  if (typeof metrics !== 'number' && !isObject(metrics)) {
    throw invalid('metrics', metrics, 'a port, or { host, port }');
  }
  checkProcessSettings(content);
  if (!Array.isArray(apps)) throw invalid('apps', apps, 'an array');
  for (const [at, each] of apps.entries()) {
    try {
      checkConfig(each, `apps[${at}]`, appKeys);
    } catch (error) {
      throw inPlace(`apps[${at}]`, error);
    }
  }
}

function checkProcessSettings(content: ProcessSettings): void {
  const { env = {}, nodeFlags = [], affinity = [] } = content;
  if (!isObject(env)) throw invalid('env', env, 'an object');
  for (const [name, value] of Object.entries(env)) {
    if (typeof value !== 'string') throw invalid(`env.${name}`, value, 'a string');
  }
  strings('nodeFlags', nodeFlags);
  if (!Array.isArray(affinity)) throw invalid('affinity', affinity, 'an array of numbers of cores');
  for (const core of affinity) integer('affinity', core, 0, maxCoreNumber);
}

const maxCoreNumber = 4095;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads `never` as Infinity, which JSON has not. */
function withoutLimit(config: AppConfig): AppConfig {
  const { maxFailures }: { maxFailures?: unknown } = config;
  return maxFailures === 'never' ? { ...config, maxFailures: Infinity } : config;
}

/** Resolves the paths of a configuration against its folder. */
function atFolder(config: AppConfig, folder: string): AppConfig {
  const at = (path: string): string => resolve(folder, path);
  const { app, static: files, cgi, unix, tls, log, accessLog } = config;
  return {
    ...config,
    ...(app !== undefined && { app: at(app) }),
    ...(files !== undefined && { static: at(files) }),
    ...(cgi !== undefined && { cgi: at(cgi) }),
    ...(unix !== undefined && { unix: at(unix) }),
    ...(tls !== undefined && { tls: tlsAtFolder(tls, at) }),
    ...(log?.file !== undefined && { log: { ...log, file: at(log.file) } }),
    ...(accessLog !== undefined && { accessLog: { ...accessLog, file: at(accessLog.file) } }),
  };
}

/** Leaves missing paths to the checks of `serve`. */
function tlsAtFolder(tls: TlsOptions, at: (path: string) => string): TlsOptions {
  const { cert, key, names }: Partial<TlsOptions> = tls;
  return {
    ...tls,
    ...(cert !== undefined && { cert: at(cert) }),
    ...(key !== undefined && { key: at(key) }),
    ...(isObject(names) && { names: certificatesAtFolder(names, at) }),
  };
}

function certificatesAtFolder(
  names: NonNullable<TlsOptions['names']>,
  at: (path: string) => string,
): NonNullable<TlsOptions['names']> {
  const resolved = Object.entries(names).map(([name, files]) => {
    const { cert, key }: { cert?: unknown; key?: unknown } = Object(files);
    const areTexts = typeof cert === 'string' && typeof key === 'string';
    return [name, areTexts ? { ...files, cert: at(cert), key: at(key) } : files];
  });
  return Object.fromEntries(resolved);
}

function tlsOf(
  cert: string | undefined,
  key: string | undefined,
  http2: boolean | undefined,
): TlsOptions | undefined {
  if (cert !== undefined && key !== undefined) return { cert, key, http2 };
  if (cert === undefined && key === undefined && http2 === undefined) return undefined;
  throw new CodedError('OPTION_INVALID', 'give --tls-cert and --tls-key, both of them');
}

/** Returns the flags for the log; `undefined` where there is none. Throws `OPTION_INVALID`. */
function logOf(given: LogOptions): LogOptions | undefined {
  const isGiven = Object.values(given).some((value) => value !== undefined);
  if (!isGiven) return undefined;
  return checkLog({ ...given, ...(given.file !== undefined && { file: resolve(given.file) }) });
}

/** Returns the flags for the access log; `undefined` where there is none. Throws `OPTION_INVALID`. */
function accessLogOf(
  file: string | undefined,
  format: AccessFormat | undefined,
): AccessLogOptions | undefined {
  if (file !== undefined) return checkAccessLog({ file: resolve(file), format });
  if (format === undefined) return undefined;
  throw new CodedError('OPTION_INVALID', 'give --access-log FILE, too: its lines go to a file');
}

const logKeys: ReadonlySet<string> = new Set(['file', 'format', 'maxMb', 'keep']);

/** Throws `OPTION_INVALID`. */
function checkAccessLog(given: Partial<AccessLogOptions>): AccessLogOptions {
  const { file, format, maxMb, keep } = ownOptions('accessLog', given, logKeys);
  const path = string('accessLog.file', file, 'a path');
  if (format !== undefined && !accessFormats.includes(format)) {
    throw invalid('accessLog.format', format, accessFormats.join(' or '));
  }
  checkRotation('accessLog', { maxMb, keep });
  return { file: path, format, maxMb, keep };
}

/** Throws `OPTION_INVALID`. */
function checkRotation(name: string, { maxMb, keep }: Pick<LogOptions, 'maxMb' | 'keep'>): void {
  if (maxMb !== undefined) integer(`${name}.maxMb`, maxMb, 1, maxLogMb);
  if (keep !== undefined) integer(`${name}.keep`, keep, 1, maxLogFiles);
}

/** Throws `OPTION_INVALID`. */
function checkLog(given: LogOptions): LogOptions {
  const { file, format, maxMb, keep } = ownOptions('log', given, logKeys);
  if (file !== undefined) string('log.file', file, 'a path');
  if (format !== undefined && format !== 'text' && format !== 'json') {
    throw invalid('log.format', format, 'text or json');
  }
  if (file === undefined && (maxMb ?? keep) !== undefined) {
    throw invalid('log.file', file, 'given where maxMb or keep is');
  }
  checkRotation('log', { maxMb, keep });
  return { file, format, maxMb, keep };
}

const maxLogMb = 1024 * 1024;
const maxLogFiles = 1000;

function nothingToServe(file: string | undefined): CodedError {
  const message =
    file === undefined
      ? `there is nothing to serve: give a program, --static FOLDER, or a ${defaultConfig} here`
      : `${file} has nothing to serve: give it app, static or cgi, or apps with such`;
  return new CodedError('CLI_FILE_NOT_FOUND', message);
}

function appOf(
  { app, static: files, fileThread = true, cgi, log, accessLog, ...options }: AppConfig,
  place: OptionPlace,
): ServedApp {
  if (app === undefined) {
    if (files === undefined && cgi === undefined) throw nothingToServe(place.file);
    const folders = {
      ...(files !== undefined && { static: folderFor('static', files) }),
      ...(cgi !== undefined && { cgi: folderFor('cgi', cgi) }),
      // The thread reads nothing of TLS, and writes no lines.
      fileThread: fileThread && options.tls === undefined && accessLog === undefined,
    };
    const name = nameIn({ name: options.name, ...folders });
    return {
      app: foldersApp,
      folder: undefined,
      options: { ...options, name, args: [JSON.stringify(folders)] },
      place,
      log,
      accessLog,
    };
  }
  if (files !== undefined || cgi !== undefined) {
    throw new CodedError(
      'OPTION_INVALID',
      'give a program or folders: serveStatic and serveCgi serve folders in a program',
    );
  }
  const path = resolve(app);
  const stats = statsOf(path);
  if (!stats?.isFile()) {
    const what = stats?.isDirectory() ? `${path} is a folder` : `there is no file ${path}`;
    throw new CodedError(
      'CLI_FILE_NOT_FOUND',
      `${what}: give the program to serve, or --static FOLDER for files`,
    );
  }
  return { app: path, folder: dirname(path), options, place, log, accessLog };
}

function folderFor(name: string, given: string): string {
  const path = resolve(given);
  if (statsOf(path)?.isDirectory()) return path;
  throw new CodedError('CLI_FILE_NOT_FOUND', `there is no folder ${path}: give one for ${name}`);
}

/** `undefined`: the path does not exist, or is inaccessible. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
