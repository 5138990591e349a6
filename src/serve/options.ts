// What `serve` can be told, checked and filled.

import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { domainToASCII } from 'node:url';
import {
  boolean,
  integer,
  invalid,
  oneOf,
  ownOptions,
  string,
  strings,
} from '../internal/index.js';
import { grantedCores } from '../worker/index.js';
import { type Owner, ownerOf } from './owner.js';
import type { TlsFiles } from './protocol.js';

/** At least and at most. */
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
 * Which loop gets a connection. `least-loaded`: the one with the fewest open connections and requests
 * in flight. `round-robin`: one after the other. `kernel`: the kernel chooses the process, and in it the
 * least loaded loop gets it. A blocked loop gets none, whatever is chosen here. `reuseport`: as `kernel`,
 * and each process has a socket of its own (SO_REUSEPORT), so that processes do not contend for one; what
 * the kernel has given to a process waits there, also when all its loops are blocked.
 */
export type Placement = 'least-loaded' | 'round-robin' | 'kernel' | 'reuseport';

export interface ServeOptions {
  /** Default: `event`. */
  readonly plan?: Plan | undefined;
  /** Processes. Default: enough that each has at most four loops, and two where there are two cores. */
  readonly processes?: number | Range | undefined;
  /** As many as `scale` may ask for. Default: twice `processes`, and at least one for each core. */
  readonly maxProcesses?: number | undefined;
  /** Event loops in each process. Default: as many as there are cores for each process. */
  readonly loops?: number | Range | undefined;
  /** Where sizes follow the load: fewer processes (or loops) to spare, and more are started. Default: 1. */
  readonly minSpare?: number | undefined;
  /** More to spare for a while, and one is ended. Default: 2. */
  readonly maxSpare?: number | undefined;
  /** Default: `least-loaded`. */
  readonly placement?: Placement | undefined;
  /**
   * Where a program listens that exports its app instead of listening; one that listens by itself finds it
   * in `PORT`. Default: `PORT`, else 3000.
   */
  readonly port?: number | undefined;
  /** Default: all addresses. */
  readonly host?: string | undefined;
  /** Instead of a port the path of a Unix socket. */
  readonly unix?: string | undefined;
  /**
   * Names by which clients ask for this app, as `a.example`, or `*.example` for all below. Apps that this
   * process serves with names share their ports: a connection goes to the processes of the app whose name
   * is in the first request, or in the TLS handshake, before they read any of it. Default: none, all
   * clients.
   */
  readonly serverNames?: readonly string[] | undefined;
  /** Certificate and key, for a program that exports its app. Paths of PEM files. */
  readonly tls?: TlsOptions | undefined;
  /** Listening sockets that this process was started with: for programs that ask for their address. */
  readonly listenFds?: readonly number[] | undefined;
  /** Whose the processes are, by name or number. The system lets only root choose. */
  readonly user?: string | number | undefined;
  /** Default: the group of `user`. */
  readonly group?: string | number | undefined;
  /** Arguments of the program. */
  readonly args?: readonly string[] | undefined;
  /** As many connections as one loop holds at most. Default: 16,384. */
  readonly maxConnections?: number | undefined;
  /**
   * After about so many connections (a tenth more or less, so that not all do at once) a process is
   * replaced, as Apache's MaxConnectionsPerChild does. Default: never.
   */
  readonly maxConnectionsPerWorker?: number | undefined;
  /** A process that takes more memory is replaced, in bytes; so is a worker of tasks. Default: never. */
  readonly maxRssBytes?: number | undefined;
  /** How long a program may take until it listens, in ms. Default: 30,000. */
  readonly startTimeoutMs?: number | undefined;
  /** After so long in one callback a loop's process is replaced, in ms. Default: 15,000. */
  readonly blockedTimeoutMs?: number | undefined;
  /** How long requests may take once their process is to end, in ms. Default: 30,000. */
  readonly drainTimeoutMs?: number | undefined;
  /**
   * Clients whose connection no loop takes for so long are answered by 503, in ms; 0: they wait. Only
   * where they speak HTTP/1 without TLS. Default: 5,000.
   */
  readonly overloadMs?: number | undefined;
  /**
   * Answers `manycore status`, `reload` and `scale` of the same user.
   * Default: false, and true under `manycore serve`.
   */
  readonly control?: boolean | undefined;
  /** Where the status is shown as a page, and at `/status.json`; a port alone is on loopback. Default: nowhere. */
  readonly status?: number | StatusAddress | undefined;
}

export interface TlsOptions {
  readonly cert: string;
  readonly key: string;
  /** Whether clients may speak HTTP/2, too. Default: false. */
  readonly http2?: boolean | undefined;
}

export interface StatusAddress {
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
}

export interface FilledServeOptions {
  readonly plan: Plan;
  readonly processes: Range;
  readonly maxProcesses: number;
  readonly loops: Range;
  readonly minSpare: number;
  readonly maxSpare: number;
  readonly placement: Placement;
  readonly port: number;
  readonly isPortGiven: boolean;
  readonly host: string | undefined;
  readonly unix: string | undefined;
  readonly serverNames: readonly string[];
  readonly tls: TlsFiles | undefined;
  readonly listenFds: readonly number[];
  readonly owner: Owner | undefined;
  readonly args: readonly string[];
  readonly maxConnections: number;
  readonly maxConnectionsPerWorker: number;
  readonly maxRssBytes: number;
  readonly startTimeoutMs: number;
  readonly blockedTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly overloadMs: number;
  readonly control: boolean;
  readonly status: StatusAddress | undefined;
}

const optionNames: ReadonlySet<string> = new Set<keyof ServeOptions>([
  'plan',
  'processes',
  'maxProcesses',
  'loops',
  'minSpare',
  'maxSpare',
  'placement',
  'port',
  'host',
  'unix',
  'serverNames',
  'tls',
  'listenFds',
  'user',
  'group',
  'args',
  'maxConnections',
  'maxConnectionsPerWorker',
  'maxRssBytes',
  'startTimeoutMs',
  'blockedTimeoutMs',
  'drainTimeoutMs',
  'overloadMs',
  'control',
  'status',
]);

const plans = ['event', 'prefork', 'worker', 'perchild'] as const;
const placements = ['least-loaded', 'round-robin', 'kernel', 'reuseport'] as const;
/** A process of its own for each four loops, and two where one would lose everything at once. */
const loopsPerProcess = 4;
const maxProcessCount = 128;
const maxLoopCount = 256;
const maxConnectionCount = 2 ** 20;
const maxTimeMs = 2 ** 31 - 1;
const defaultPort = 3000;

/** Throws `OPTION_INVALID`. */
export function fillServeOptions(options: ServeOptions = {}): FilledServeOptions {
  const given = ownOptions('the options of serve', options, optionNames);
  const plan = oneOf('plan', given.plan ?? 'event', plans);
  const { processes, loops } = sizes(plan, given);
  const cores = grantedCores().count;
  const maxProcesses =
    given.maxProcesses ?? Math.min(maxProcessCount, Math.max(2 * processes.max, cores));
  const minSpare = integer('minSpare', given.minSpare ?? 1, 0, maxProcessCount);
  return {
    plan,
    processes,
    maxProcesses: integer('maxProcesses', maxProcesses, processes.max, maxProcessCount),
    loops,
    minSpare,
    maxSpare: integer('maxSpare', given.maxSpare ?? minSpare + 1, minSpare, maxProcessCount),
    placement: oneOf('placement', given.placement ?? 'least-loaded', placements),
    port: integer('port', given.port ?? portOfEnvironment(), 0, 65_535),
    isPortGiven: given.port !== undefined,
    host: given.host === undefined ? undefined : string('host', given.host, 'an address'),
    unix: given.unix === undefined ? undefined : resolve(string('unix', given.unix, 'a path')),
    serverNames: strings('serverNames', given.serverNames ?? []).map(serverName),
    tls: given.tls === undefined ? undefined : tlsFiles(given.tls),
    listenFds: (given.listenFds ?? []).map((fd) => integer('listenFds', fd, 0, 2 ** 31 - 1)),
    owner: ownerOf(given.user, given.group),
    args: strings('args', given.args ?? []),
    maxConnections: integer(
      'maxConnections',
      given.maxConnections ?? 16_384,
      1,
      maxConnectionCount,
    ),
    maxConnectionsPerWorker: orNever('maxConnectionsPerWorker', given.maxConnectionsPerWorker),
    maxRssBytes: orNever('maxRssBytes', given.maxRssBytes),
    startTimeoutMs: integer('startTimeoutMs', given.startTimeoutMs ?? 30_000, 1, maxTimeMs),
    blockedTimeoutMs: integer(
      'blockedTimeoutMs',
      given.blockedTimeoutMs ?? 15_000,
      1000,
      maxTimeMs,
    ),
    drainTimeoutMs: integer('drainTimeoutMs', given.drainTimeoutMs ?? 30_000, 0, maxTimeMs),
    overloadMs: integer('overloadMs', given.overloadMs ?? 5000, 0, maxTimeMs),
    control: boolean('control', given.control ?? false),
    status: given.status === undefined ? undefined : statusAddress(given.status),
  };
}

/** As clients write it: in lower case, other scripts in ASCII. */
function serverName(given: string): string {
  const [, star = '', name = ''] = /^(\*\.)?(.*?)\.?$/.exec(given) ?? [];
  const address = name.replace(/^\[(.*)\]$/, '$1');
  if (star === '' && isIP(address) === 6) return `[${address.toLowerCase()}]`;
  if (star === '' && isIP(address) === 4) return address;
  const ascii = /[/?#@*]/.test(name) ? '' : domainToASCII(name);
  if (ascii === '') throw invalid('serverNames', given, 'a name, as a.example or *.example');
  return `${star}${ascii}`;
}

function tlsFiles(options: TlsOptions): TlsFiles {
  const given = ownOptions('tls', options, new Set(['cert', 'key', 'http2']));
  const file = (name: 'cert' | 'key'): string =>
    resolve(string(`tls.${name}`, given[name], 'the path of a PEM file'));
  const files = { cert: file('cert'), key: file('key') };
  for (const [name, path] of Object.entries(files)) {
    if (!existsSync(path)) throw invalid(`tls.${name}`, path, 'the path of a file that is there');
  }
  const http2 = boolean('tls.http2', given.http2 ?? false);
  return { ...files, http2 };
}

function statusAddress(options: number | StatusAddress): StatusAddress {
  if (typeof options === 'number') return statusAddress({ host: '127.0.0.1', port: options });
  if (typeof options !== 'object') throw invalid('status', options, 'a port, or { host, port }');
  const given = ownOptions('status', options, new Set(['host', 'port']));
  const host = string('status.host', given.host, 'an address');
  return { host, port: integer('status.port', given.port, 0, 65_535) };
}

function orNever(name: string, value: number | undefined): number {
  return value === undefined ? Infinity : integer(name, value, 1, Number.MAX_SAFE_INTEGER);
}

function sizes(plan: Plan, given: ServeOptions): { processes: Range; loops: Range } {
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
    throw invalid('processes', text(processes), `a number: the plan ${plan} has a fixed one`);
  }
  if (plan === 'prefork' && loops.max > 1) {
    throw invalid('loops', text(loops), '1: under the plan prefork each process has one');
  }
  if (plan !== 'perchild' && loops.min < loops.max) {
    throw invalid('loops', text(loops), 'a number: only the plan perchild changes it');
  }
  return { processes, loops };
}

/** As it is written for the command. */
function text({ min, max }: Range): number | string {
  return min === max ? min : `${min}..${max}`;
}

/** What may be asked of a server that runs. Throws `OPTION_INVALID`. */
export function laterRange(given: number | Range, { maxProcesses }: FilledServeOptions): Range {
  const asked = range('processes', given, maxProcessCount);
  if (asked.max <= maxProcesses) return asked;
  throw invalid(
    'processes',
    text(asked),
    `at most ${maxProcesses}: the server was started for no more (maxProcesses)`,
  );
}

/** Throws `OPTION_INVALID`. */
function range(name: string, asked: number | Range, max: number): Range {
  if (typeof asked === 'number') {
    const count = integer(name, asked, 1, max);
    return { min: count, max: count };
  }
  if (typeof asked !== 'object') throw invalid(name, asked, 'a whole number, or { min, max }');
  const given = ownOptions(name, asked, new Set(['min', 'max']));
  const min = integer(`${name}.min`, given.min, 1, max);
  return { min, max: integer(`${name}.max`, given.max, min, max) };
}

/** `PORT` may be for the program alone, as the path of a socket. */
function portOfEnvironment(): number {
  const text = process.env['PORT'] ?? '';
  return /^\d+$/.test(text) ? Number(text) : defaultPort;
}

/** The program's path. Throws `OPTION_INVALID`. */
export function checkApp(app: unknown): string {
  if (app instanceof URL && app.protocol === 'file:')
    return resolve(decodeURIComponent(app.pathname));
  if (typeof app === 'string' && app !== '') return resolve(app);
  throw invalid('app', app, 'the path of a program');
}
