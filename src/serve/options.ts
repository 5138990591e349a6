// Options of `serve`: checks and defaults.
// Long (over 400 lines), because each option has its documentation and its check here.

import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { domainToASCII } from 'node:url';
import {
  boolean,
  booleanOption,
  choiceOption,
  functionOption,
  integer,
  integerOption,
  invalid,
  ownOf,
  ownOptions,
  type Read,
  type Readers,
  readOptions,
  restartDefaults,
  string,
  strings,
} from '../lib/index.js';
import { grantedCores } from '../worker/index.js';
import { checkName } from './name.js';
import { type AccessFormat, accessFormats } from './output/access-line.js';
import type { OutputLine } from './output/lines.js';
import { portOfEnvironment } from './shared/port-of-environment.js';
import { type Sticky, stickyKey } from './sticky.js';
import { type Owner, ownerOf } from './supervisor/owner.js';
import type { TlsFiles } from './tickets.js';

/** Minimum and maximum. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/**
 * Apache's process models. `event`: processes × loops, where processes come and go with the load.
 * `prefork`: the same with one loop in each process. `worker`: a fixed number of both. `perchild`: a
 * fixed number of processes, in each of which loops come and go.
 */
export type Plan = 'event' | 'prefork' | 'worker' | 'perchild';

/**
 * The policy that chooses a loop for a connection. `least-loaded`: the one with the fewest open connections
 * and requests in flight. `round-robin`: one after the other. `kernel`: the kernel chooses the process, and in it the
 * least loaded loop gets it. A blocked loop gets none under any policy. `reuseport`: as `kernel`, and each
 * process has a socket of its own (SO_REUSEPORT), so that processes do not contend for one; a connection
 * waits at the process that the kernel chose, also when all its loops are blocked.
 */
export type Placement = 'least-loaded' | 'round-robin' | 'kernel' | 'reuseport';

export interface ServeOptions {
  /**
   * Name of the app: for `manycore status`, `reload`, `scale` and `stop`, and in the titles of its processes. Default:
   * that of the program's file, or of its folder where the file is named index, main, server or app.
   */
  readonly name?: string | undefined;
  /** Default: `event`. */
  readonly plan?: Plan | undefined;
  /** Number of processes. Default: enough for at most four loops each, and at least two on two cores. */
  readonly processes?: number | Range | undefined;
  /** Upper limit of `scale`. Default: twice `processes`, and at least one for each core. */
  readonly maxProcesses?: number | undefined;
  /** Event loops in each process. Default: as many as there are cores for each process. */
  readonly loops?: number | Range | undefined;
  /** Minimum of spare processes (or loops), when sizes follow the load; below it more start. Default: 1. */
  readonly minSpare?: number | undefined;
  /** Maximum of spare ones; above it for a while, one is ended. Default: 2. */
  readonly maxSpare?: number | undefined;
  /** Default: `least-loaded`. */
  readonly placement?: Placement | undefined;
  /**
   * Keeps each client at one loop while that lives, for programs with state in memory: connections with the same
   * address, cookie, header or query parameter go to the same loop. The state is lost with the loop, at each
   * reload. Not with `placement`. Default: none.
   */
  readonly sticky?: Sticky | undefined;
  /**
   * TCP port of a program that exports its app; in `PORT` for a program that listens by itself. Default:
   * `PORT`, else 3000.
   */
  readonly port?: number | undefined;
  /** Address to bind. Default: all addresses. */
  readonly host?: string | undefined;
  /** Path of a Unix socket, instead of a port. */
  readonly unix?: string | undefined;
  /**
   * Names under which clients request this app, as `a.example`, or `*.example` for all below. Apps that this
   * process serves with names share their ports: a connection goes to the processes of the app whose name
   * is in the first request, or in the TLS handshake, before they read any of it. Default: none, all
   * clients.
   */
  readonly serverNames?: readonly string[] | undefined;
  /** Certificate and key, for a program that exports its app. Paths of PEM files. */
  readonly tls?: TlsOptions | undefined;
  /** Inherited listening sockets, for programs that listen on their addresses. */
  readonly listenFds?: readonly number[] | undefined;
  /** User of the processes, by name or id. Only root may choose it. */
  readonly user?: string | number | undefined;
  /** Group of the processes, by name or id. Default: the group of `user`. */
  readonly group?: string | number | undefined;
  /** Arguments of the program. */
  readonly args?: readonly string[] | undefined;
  /** Maximum of open connections of one loop. Default: 16,384. */
  readonly maxConnections?: number | undefined;
  /**
   * A process is replaced after this number of connections, as under Apache's MaxConnectionsPerChild, or up to a
   * tenth earlier, by chance: so that not all are replaced at once. Default: never.
   */
  readonly maxConnectionsPerProcess?: number | undefined;
  /** The same after this number of answered HTTP requests. Default: never. */
  readonly maxRequestsPerProcess?: number | undefined;
  /** The same at this age of a process, in ms. Default: never. */
  readonly maxAgeMs?: number | undefined;
  /** Memory limit in bytes: processes and workers above it are replaced. Default: none. */
  readonly maxRssBytes?: number | undefined;
  /**
   * The server gives up when so many processes in a row have ended before they had a client, and no other serves well;
   * they are replaced after pauses that double up to 5 s. `Infinity`: it never gives up. Default: 5.
   */
  readonly maxFailures?: number | undefined;
  /**
   * Times at which the server reloads, as by `reload()`, in local time: a cron pattern, as `0 4 * * *` for each day at
   * four. A time that comes while a reload goes on is skipped. Default: none.
   */
  readonly reloadAt?: string | undefined;
  /** Time for a program to listen, in ms. Default: 30,000. */
  readonly startTimeoutMs?: number | undefined;
  /** Maximum time of one callback, in ms; then the loop's process is replaced. Default: 15,000. */
  readonly blockedTimeoutMs?: number | undefined;
  /** Time for open requests of a process that drains, in ms. Default: 30,000. */
  readonly drainTimeoutMs?: number | undefined;
  /**
   * A client whose connection no loop takes within this time gets 503, in ms; 0: it waits. Only for HTTP/1
   * without TLS. Default: 5,000.
   */
  readonly overloadMs?: number | undefined;
  /**
   * Called with each line that the processes print, in the order of each stream; then `manycore logs` shows them, too.
   * An error that it throws is an uncaught exception of the program. Default: the program's stdout and stderr.
   */
  readonly onOutput?: ((line: OutputLine) => void) | undefined;
  /** A line for each request, for a log. Default: none. */
  readonly accessLog?: AccessLogOptions | undefined;
  /**
   * True: a kept-alive HTTP/1 connection without TLS leaves a loop that is blocked, between two requests, and
   * another one serves it. State that the program keeps on its sockets does not go along.
   * Default: true, and false with `sticky`.
   */
  readonly rescue?: boolean | undefined;
  /**
   * Answers `manycore status`, `reload` and `scale` of the same user.
   * Default: false, and true under `manycore serve`.
   */
  readonly control?: boolean | undefined;
  /** Address of the status page and of `/status.json`; a port alone is on loopback. Default: none. */
  readonly status?: number | StatusAddress | undefined;
  /**
   * Address for the probes of load balancers and orchestrators; a port alone is on loopback. The supervisor answers
   * `/livez` with 200, and `/readyz` with 200 while all wanted processes serve and no `readiness` of the program
   * says no, else with 503. Default: none.
   */
  readonly health?: number | StatusAddress | undefined;
}

export interface AccessLogOptions {
  /** `common`: as Apache and nginx; `json`: an object a line. Default: `common`. */
  readonly format?: AccessFormat | undefined;
  /**
   * Called with one or more lines and their ends, at most a tenth of a second after the answers. An error that it
   * throws is an uncaught exception of the program.
   */
  readonly onLines: (lines: string) => void;
}

export interface TlsOptions {
  readonly cert: string;
  readonly key: string;
  /** True: clients may also use HTTP/2. Default: false. */
  readonly http2?: boolean | undefined;
  /**
   * Other certificates for clients that ask for these names: `a.example`, or `*.example` for all directly below.
   * Default: none.
   */
  readonly names?: Readonly<Record<string, TlsCertificate>> | undefined;
}

/** Paths of PEM files. */
export interface TlsCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface StatusAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

const plans = ['event', 'prefork', 'worker', 'perchild'] as const;
/** One process for four loops, but at least two, so that a crash does not end all loops. */
const loopsPerProcess = 4;
const maxProcessCount = 128;
const maxLoopCount = 256;
const maxConnectionCount = 2 ** 20;
const maxTimeMs = 2 ** 31 - 1;
/** A process that lived shorter would be replaced as soon as it serves. */
const minAgeMs = 1000;
const minSpareOption = integerOption(1, 0, maxProcessCount);

const serveReaders = {
  name: (name, given) => (given === undefined ? undefined : checkName(name, given)),
  plan: choiceOption(plans),
  processes: (_, __, given) => sizes(given).processes,
  maxProcesses: (name, max, given) => {
    const { processes } = sizes(given);
    const usual = Math.min(maxProcessCount, Math.max(2 * processes.max, grantedCores().count));
    return integer(name, max ?? usual, processes.max, maxProcessCount);
  },
  loops: (_, __, given) => sizes(given).loops,
  minSpare: minSpareOption,
  maxSpare: (name, max, given) => {
    const min = minSpareOption('minSpare', given.minSpare);
    return integer(name, max ?? min + 1, min, maxProcessCount);
  },
  placement: choiceOption(['least-loaded', 'round-robin', 'kernel', 'reuseport']),
  sticky: (_, sticky, given) => (sticky === undefined ? undefined : stickyFor(sticky, given)),
  port: (name, port) => integer(name, port ?? portOfEnvironment(), 0, 65_535),
  host: (name, host) => (host === undefined ? undefined : string(name, host, 'an address')),
  unix: (name, path) => (path === undefined ? undefined : resolve(string(name, path, 'a path'))),
  serverNames: (name, names = []) => strings(name, names).map((each) => serverName(name, each)),
  tls: (_, tls) => (tls === undefined ? undefined : tlsFiles(tls)),
  listenFds: (name, fds = []) => {
    if (!Array.isArray(fds)) throw invalid(name, fds, 'an array of descriptors');
    return fds.map((fd: number) => integer(name, fd, 0, 2 ** 31 - 1));
  },
  user: (_, user, { group }) => ownerOf(user, group),
  group: () => undefined,
  args: (name, args = []) => strings(name, args),
  maxConnections: integerOption(16_384, 1, maxConnectionCount),
  maxConnectionsPerProcess: (name, value) => orNever(name, value),
  maxRequestsPerProcess: (name, value) => orNever(name, value),
  maxAgeMs: (name, value) => orNever(name, value, minAgeMs),
  maxRssBytes: (name, value) => orNever(name, value),
  maxFailures: (name, value = restartDefaults.maxFailures) =>
    value === Infinity ? value : integer(name, value, 1, Number.MAX_SAFE_INTEGER),
  reloadAt: (name, pattern) =>
    pattern === undefined ? undefined : string(name, pattern, "a cron pattern, as '0 4 * * *'"),
  startTimeoutMs: integerOption(30_000, 1, maxTimeMs),
  blockedTimeoutMs: integerOption(15_000, 1000, maxTimeMs),
  drainTimeoutMs: integerOption(30_000, 0, maxTimeMs),
  overloadMs: integerOption(5000, 0, maxTimeMs),
  onOutput: functionOption<(line: OutputLine) => void>,
  accessLog: (_, given) => (given === undefined ? undefined : accessLogFor(given)),
  rescue: (name, rescue, { sticky }) => {
    if (rescue === true && sticky !== undefined) {
      throw invalid(name, rescue, 'false beside sticky: its clients stay with their loop');
    }
    return boolean(name, rescue ?? sticky === undefined);
  },
  control: booleanOption(false),
  status: optionalAddress,
  health: optionalAddress,
} satisfies Readers<ServeOptions>;

/** Names of all options. */
export const serveOptionNames: readonly string[] = Object.freeze(Object.keys(serveReaders));

export interface FilledServeOptions extends Omit<Read<typeof serveReaders>, 'user' | 'group'> {
  readonly owner: Owner | undefined;
  readonly isPortGiven: boolean;
}

/** Throws `OPTION_INVALID`. */
export function fillServeOptions(options: ServeOptions = {}): FilledServeOptions {
  const { user, group, ...read } = readOptions('the options of serve', options, serveReaders);
  return { ...read, owner: user, isPortGiven: ownOf(options).port !== undefined };
}

/** Normalizes a name as clients send it: in lower case, other scripts in ASCII. */
function serverName(option: string, given: string): string {
  const [, star = '', name = ''] = /^(\*\.)?(.*?)\.?$/.exec(given) ?? [];
  const address = name.replace(/^\[(.*)\]$/, '$1');
  if (star === '' && isIP(address) === 6) return `[${address.toLowerCase()}]`;
  if (star === '' && isIP(address) === 4) return address;
  const ascii = /[/?#@*]/.test(name) ? '' : domainToASCII(name);
  if (ascii === '') throw invalid(option, given, 'a name, as a.example or *.example');
  return `${star}${ascii}`;
}

/** Throws `OPTION_INVALID`, also for options that exclude it. */
function stickyFor(given: Sticky, { placement, tls, unix }: ServeOptions) {
  const key = stickyKey(given);
  if (placement !== undefined) throw invalid('placement', placement, 'left out beside sticky');
  if (unix !== undefined) throw invalid('unix', unix, 'left out beside sticky: it is for ports');
  if (tls !== undefined && key.kind !== 'address') {
    throw invalid('sticky', given, "'address' beside tls: requests cannot be read before the loop");
  }
  return key;
}

function accessLogFor(options: AccessLogOptions) {
  const { format = 'common', onLines } = ownOptions(
    'accessLog',
    options,
    new Set(['format', 'onLines']),
  );
  if (!accessFormats.includes(format)) {
    throw invalid('accessLog.format', format, accessFormats.join(' or '));
  }
  if (typeof onLines !== 'function') throw invalid('accessLog.onLines', onLines, 'a function');
  return { format, onLines };
}

function tlsFiles(options: TlsOptions): TlsFiles {
  const { names = {}, ...given } = ownOptions(
    'tls',
    options,
    new Set(['cert', 'key', 'http2', 'names']),
  );
  if (typeof names !== 'object' || names === null) {
    throw invalid('tls.names', names, 'an object with certificates by name');
  }
  const certificates = Object.entries(names).map(([name, certificate]) => {
    const option = `tls.names[${JSON.stringify(name)}]`;
    if (typeof certificate !== 'object') throw invalid(option, certificate, '{ cert, key }');
    const own = ownOptions(option, certificate, new Set(['cert', 'key']));
    return { name: serverName('tls.names', name), ...certificateFiles(option, own) };
  });
  const http2 = boolean('tls.http2', given.http2 ?? false);
  return { ...certificateFiles('tls', given), http2, names: certificates };
}

function certificateFiles(option: string, given: TlsCertificate): TlsCertificate {
  const file = (name: 'cert' | 'key'): string =>
    resolve(string(`${option}.${name}`, given[name], 'the path of a PEM file'));
  const files = { cert: file('cert'), key: file('key') };
  for (const [name, path] of Object.entries(files)) {
    if (!existsSync(path)) throw invalid(`${option}.${name}`, path, 'the path of an existing file');
  }
  return files;
}

function optionalAddress(
  name: string,
  options: number | StatusAddress | undefined,
): StatusAddress | undefined {
  if (options === undefined) return undefined;
  if (typeof options === 'number') return { host: '127.0.0.1', port: portIn(name, options) };
  if (typeof options !== 'object') throw invalid(name, options, 'a port, or { host, port }');
  const given = ownOptions(name, options, new Set(['host', 'port']));
  const host = string(`${name}.host`, given.host, 'an address');
  return { host, port: portIn(`${name}.port`, given.port) };
}

function portIn(name: string, port: number): number {
  return integer(name, port, 0, 65_535);
}

function orNever(name: string, value: number | undefined, min = 1): number {
  return value === undefined ? Infinity : integer(name, value, min, Number.MAX_SAFE_INTEGER);
}

function sizes(given: ServeOptions): { processes: Range; loops: Range } {
  const { plan = 'event' } = given;
  const cores = grantedCores().count;
  const full =
    plan === 'prefork' ? cores : Math.max(Math.ceil(cores / loopsPerProcess), Math.min(2, cores));
  const grows = plan === 'event' || plan === 'prefork';
  const defaultProcesses = grows ? { min: Math.min(2, full), max: full } : full;
  const processes = range('processes', given.processes ?? defaultProcesses, maxProcessCount);
  const perProcess = Math.max(1, Math.ceil(cores / processes.max));
  const defaultLoops = plan === 'perchild' ? { min: 1, max: perProcess } : perProcess;
  const loops = range(
    'loops',
    given.loops ?? (plan === 'prefork' ? 1 : defaultLoops),
    maxLoopCount,
  );
  if (!grows && processes.min < processes.max) {
    throw invalid('processes', rangeText(processes), `a number: the plan ${plan} has a fixed one`);
  }
  if (plan === 'prefork' && loops.max > 1) {
    throw invalid('loops', rangeText(loops), '1: under the plan prefork each process has one');
  }
  if (plan !== 'perchild' && loops.min < loops.max) {
    throw invalid('loops', rangeText(loops), 'a number: only the plan perchild changes it');
  }
  return { processes, loops };
}

/** Formats a range as the command line does. */
export function rangeText({ min, max }: Range): number | string {
  return min === max ? min : `${min}..${max}`;
}

/** Checks the new size of a running server. Throws `OPTION_INVALID`. */
export function laterRange(given: number | Range, { maxProcesses }: FilledServeOptions): Range {
  const wanted = range('processes', given, maxProcessCount);
  if (wanted.max <= maxProcesses) return wanted;
  throw invalid(
    'processes',
    rangeText(wanted),
    `at most ${maxProcesses}: the server was started for no more (maxProcesses)`,
  );
}

/** Throws `OPTION_INVALID`. */
function range(name: string, value: number | Range, max: number): Range {
  if (typeof value === 'number') {
    const count = integer(name, value, 1, max);
    return { min: count, max: count };
  }
  if (typeof value !== 'object') throw invalid(name, value, 'a whole number, or { min, max }');
  const given = ownOptions(name, value, new Set(['min', 'max']));
  const min = integer(`${name}.min`, given.min, 1, max);
  return { min, max: integer(`${name}.max`, given.max, min, max) };
}

/** The program's path. Throws `OPTION_INVALID`. */
export function checkApp(app: unknown): string {
  if (app instanceof URL && app.protocol === 'file:')
    return resolve(decodeURIComponent(app.pathname));
  if (typeof app === 'string' && app !== '') return resolve(app);
  throw invalid('app', app, 'the path of a program');
}
