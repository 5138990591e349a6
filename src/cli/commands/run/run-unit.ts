// `manycore run` with units: a file with a flag of units, several by `--unit`, or those of a file (unit-list.ts),
// on event loops of their own, in the foreground. TERM and INT undeploy them; a second signal ends all at once. HUP
// redeploys them, as `manycore reload` does.

import { resolve } from 'node:path';
import type { ClusterOptions } from '../../../cluster/index.js';
import { CodedError } from '../../../errors.js';
import { announcements, hintFor, invalid, messageOf } from '../../../lib/index.js';
import { addressText } from '../../../serve/index.js';
import {
  type Deployment,
  Loops,
  type RestartStrategy,
  type UnitPlacement,
  unitStack,
} from '../../../units/index.js';
import {
  type ClusterFlags,
  clusterFields,
  clusterFlagIn,
  clusterOptions,
  localOptions,
  plural,
  printCluster,
} from '../../cluster-flags.js';
import { reportLosses } from '../../report-losses.js';
import type { UnitEntry, UnitList } from './unit-list.js';

export interface UnitFlags extends ClusterFlags {
  readonly instances?: number | undefined;
  readonly processes?: number | undefined;
  readonly loops?: number | undefined;
  readonly name?: string | undefined;
  readonly on?: UnitPlacement | undefined;
  /** Any value, from JSON. */
  readonly config?: unknown;
  /** URLs of NATS servers, with commas between them. */
  readonly cluster?: string | undefined;
}

const countNames = ['instances', 'processes', 'loops'] as const;
/** Flags with the fields that they set. */
const textNames = new Map([
  ['name', 'name'] as const,
  ['cluster', 'cluster'] as const,
  ...clusterFields,
]);
const flagNames: readonly string[] = [...countNames, ...textNames.keys(), 'config', 'on'];

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * True: the arguments behind the file have --instances, or --cluster with a URL or `local`. Without them it is a program, and
 * all are its own: programs have flags such as --name and --config, too.
 */
export function hasUnitFlags(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  const own = end === -1 ? args : args.slice(0, end);
  return own.some((argument, at) => {
    const cluster = argument === '--cluster' ? `${argument}=${own[at + 1]}` : argument;
    return /^--instances(=|$)/.test(argument) || /^--cluster=([a-z]+:\/\/|local$)/.test(cluster);
  });
}

/**
 * Separates the flags of a unit from the other arguments of `run`; those after `--` are never flags. Throws
 * `OPTION_INVALID`.
 */
export function takeUnitFlags(args: readonly string[]): { flags: UnitFlags; rest: string[] } {
  const flags: Writable<UnitFlags> = {};
  const rest: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const argument = args[at] ?? '';
    if (argument === '--') {
      rest.push(...args.slice(at + 1));
      break;
    }
    const [, name = '', inline] = /^--([\w-]+)(?:=([^]*))?$/.exec(argument) ?? [];
    if (!flagNames.includes(name)) rest.push(argument);
    else if (inline !== undefined) setFlag(flags, name, inline);
    else {
      at += 1;
      setFlag(flags, name, args[at]);
    }
  }
  return { flags, rest };
}

function setFlag(flags: Writable<UnitFlags>, name: string, text: string | undefined): void {
  if (text === undefined) throw wrongFlag(name, 'nothing');
  const count = countNames.find((each) => each === name);
  const [, field] = [...textNames].find(([each]) => each === name) ?? [];
  if (field !== undefined) flags[field] = text;
  else if (name === 'on' && (text === 'loop' || text === 'blocking')) flags.on = text;
  else if (name === 'config') flags.config = jsonOf(text);
  else if (count !== undefined && /^\d+$/.test(text)) flags[count] = Number(text);
  else throw wrongFlag(name, JSON.stringify(text));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CodedError('OPTION_INVALID', `--config is no JSON: ${messageOf(cause)}`, { cause });
  }
}

function wrongFlag(name: string, what: string): CodedError {
  const isCount = countNames.some((each) => each === name);
  const wanted = name === 'on' ? 'loop or blocking' : isCount ? 'a whole number' : 'a value';
  return new CodedError('OPTION_INVALID', `--${name} is ${what}: it must be ${wanted}`);
}

/** Runs one unit with its flags, as `runUnits`. */
export async function runUnit(file: string, flags: UnitFlags): Promise<void> {
  const { instances, name, config, on } = flags;
  await runUnits(file, [{ file, instances, name, config, on }], flags);
}

/** Runs several units, as `runUnits`. Rejects with `OPTION_INVALID`, for flags of one unit too. */
export async function runSeveral(
  { shown, units, strategy, size }: UnitList,
  flags: UnitFlags,
): Promise<void> {
  for (const name of ['instances', 'name', 'config', 'on'] as const) {
    if (flags[name] === undefined) continue;
    const way = 'several units have theirs in a file: manycore run units.json';
    throw new CodedError('OPTION_INVALID', `--${name} is for one unit: ${way}`);
  }
  await runUnits(shown, units, { ...size, ...flags }, strategy);
}

/**
 * Deploys units one after the other, on the same loops, as a group where there is a strategy; resolves when all instances run. `shown` is the program in
 * `manycore status` and `manycore top`. Rejects with the errors of `Loops` and `deploy`.
 */
async function runUnits(
  shown: string,
  units: readonly UnitEntry[],
  flags: UnitFlags,
  strategy?: RestartStrategy,
): Promise<void> {
  const { processes, loops: loopsPerProcess } = flags;
  const cluster = clusterOf(flags);
  process.argv[1] = resolve(shown);
  const loops = new Loops({ processes, loops: loopsPerProcess, control: true, cluster });
  reportLosses('units');
  installSignalHandlers(loops);
  const deployments: Deployment[] = [];
  let hasDeployed = false;
  let hasFailed = false;
  // Each instance is given up by itself.
  announcements.unitFailed.subscribe(() => {
    process.exitCode = 1;
    hasFailed = true;
    if (hasDeployed) void endIfAllFailed(loops, deployments);
  });
  try {
    const note = async (deployment: Deployment, instances = 1): Promise<void> => {
      deployments.push(deployment);
      const status = await loops.status();
      const pids = new Set(status.map(({ pid }) => pid)).size;
      const where = `${plural(status.length, 'loop')} in ${plural(pids, 'process')}`;
      console.log(`${deployment.name}: ${plural(instances, 'instance')}, on ${where}`);
    };
    if (strategy === undefined) {
      for (const { file, ...options } of units) {
        await note(await loops.deploy(file, options), options.instances);
      }
    } else {
      const members = units.map(({ file, ...options }) => ({ ...options, unit: file }));
      const group = await loops.deployAll(members, { strategy });
      for (const [at, each] of group.deployments.entries()) await note(each, units[at]?.instances);
    }
    for (const address of await loops.addresses()) {
      console.log(`listening on ${addressText(address)}`);
    }
    if (loops.cluster !== undefined) printCluster(loops.cluster);
    hasDeployed = true;
    if (hasFailed) await endIfAllFailed(loops, deployments);
  } catch (error) {
    await loops.close();
    throw error;
  }
}

/** The program ends when all instances have been given up, which `reportLosses` prints. */
async function endIfAllFailed(loops: Loops, deployments: readonly Deployment[]): Promise<void> {
  const instances = (await Promise.all(deployments.map((each) => each.status()))).flat();
  if (!instances.every(({ state }) => state === 'failed')) return;
  await loops.close().catch(() => {}); // each has failed already
  process.exit();
}

function clusterOf({ cluster: nats, ...flags }: UnitFlags): ClusterOptions | undefined {
  if (nats === 'local') return localOptions(flags);
  if (nats !== undefined) {
    const hint = /[.:/,]/.test(nats) ? '' : hintFor(nats, new Set(['local']));
    if (hint === '') return clusterOptions(nats, flags); // a host of the network may have any name
    const { message } = invalid(
      '--cluster',
      nats,
      'nats://HOST:PORT, several with commas, or local',
    );
    throw new CodedError('OPTION_INVALID', `${message}${hint}`);
  }
  const alone = clusterFlagIn(flags);
  if (alone === undefined) return undefined;
  const message = `${alone} is for a cluster: give --cluster URL, or --cluster local, too`;
  throw new CodedError('OPTION_INVALID', message);
}

function installSignalHandlers(loops: Loops): void {
  let isEnding = false;
  const end = (): void => {
    if (isEnding) {
      loops.kill();
      process.exit(1);
    }
    isEnding = true;
    const count = loops.deployments.length;
    if (count > 0) console.log(`ends ${plural(count, 'unit')}; once more ends everything at once`);
    loops.close().then(
      () => process.exit(),
      (error: unknown) => {
        const code = error instanceof CodedError ? ` (${error.code})` : '';
        console.error(`manycore: ${messageOf(error)}${code}`);
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', () => {
    if (!isEnding) void reload(loops);
  });
}

/** Redeploys all units; those that cannot be redeployed go on as they were. */
async function reload(loops: Loops): Promise<void> {
  try {
    await loops.redeploy();
    console.log('reloaded');
  } catch (error) {
    const stack = unitStack(error);
    if (stack !== undefined) console.error(stack);
    const code = error instanceof CodedError ? ` (${error.code})` : '';
    console.error(`manycore: ${messageOf(error)}${code}`);
  }
}
