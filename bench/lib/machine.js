// Description of the machine that the numbers are from: a number without it is worth nothing.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';

/** Line of Node whose results make the documents; those of others are stored beside, after fewer rounds. */
export const mainLine = 24;
const roundsOfOthers = 3;

/** `node`: as `v22.1.0`. */
export function lineOf(node) {
  return Number.parseInt(node.slice(1), 10);
}

/** Folder for the results of other lines in bench/results, and their rounds. */
export function placeOf(node) {
  const line = lineOf(node);
  return line === mainLine
    ? { folder: '', maxRounds: Infinity }
    : { folder: `node-${line}/`, maxRounds: roundsOfOthers };
}

/** `node` is the binary that the contenders run under, which need not be this process's own. */
export function describeMachine(node) {
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: allowedCores().length,
    physicalCores: physicalCores(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()}`,
    node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
    commit: git('rev-parse', '--short=12', 'HEAD'),
    isChanged: git('status', '--porcelain', '--untracked-files=no', '--', ':!bench/results') !== '',
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    loadBefore: os.loadavg()[0],
  };
}

/** Returns the commit of the clone in `folder`, shortened. */
export function commitOf(folder) {
  return git('-C', folder, 'rev-parse', '--short=12', 'HEAD');
}

/**
 * Returns the cores that this process may use, by the kernel's numbers. One hardware thread of each physical
 * core comes first, so that the first n of them are n cores as far as there are so many.
 */
export function allowedCores() {
  const status = readFileSync('/proc/self/status', 'utf8');
  const list = /^Cpus_allowed_list:\s+(\S+)/m.exec(status)?.[1] ?? '0';
  return physicalFirst(parseCores(list), (core) => parseCores(siblingsOf(core) ?? String(core)));
}

/** `cores` in order, but second hardware threads behind all first ones, third behind second. */
export function physicalFirst(cores, siblingsOf) {
  const rankOf = (core) =>
    siblingsOf(core)
      .filter((each) => cores.includes(each))
      .indexOf(core);
  const ranks = new Map(cores.map((core) => [core, rankOf(core)]));
  return cores.toSorted((a, b) => ranks.get(a) - ranks.get(b) || a - b);
}

/** Returns how many of the cores that this process may use are physical ones. */
function physicalCores() {
  const siblings = allowedCores().map(siblingsOf);
  return siblings.includes(undefined) ? siblings.length : new Set(siblings).size;
}

/**
 * Returns the total size of the largest caches of the machine, each counted once, or 0 when unknown. It
 * covers all cores, so that it is the same for a process that may use only some.
 */
export function lastLevelCacheBytes() {
  const sizes = new Map();
  for (const core of parseCores(readCpus('online') ?? '0')) {
    const level = [3, 2].find((index) => readCpus(`cpu${core}/cache/index${index}/size`));
    const kib = Number.parseInt(readCpus(`cpu${core}/cache/index${level}/size`) ?? '0', 10);
    sizes.set(readCpus(`cpu${core}/cache/index${level}/shared_cpu_list`), kib * 1024);
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

/** The cores on one physical core with this one, itself included, as the kernel lists them. */
const siblingsOf = (core) => readCpus(`cpu${core}/topology/thread_siblings_list`);

/** Returns the kernel's list of cores; `undefined` when it has none. */
function readCpus(file) {
  try {
    return readFileSync(`/sys/devices/system/cpu/${file}`, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** `0-2,8` is 0, 1, 2 and 8. */
function parseCores(list) {
  return list.split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}

function git(...args) {
  try {
    return execFileSync('git', args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return 'unknown';
  }
}
