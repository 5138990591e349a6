// Finds the layers that this machine has for partitions, and why it can have none. A partition is never weaker than asked for:
// each layer that is missing is an error, unless the program allows it by name.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CodedError } from '../../errors.js';
import { messageOf, ownOf } from '../../lib/index.js';
import { enterPath, guestClockPath } from '../../native.js';
import { namespacesProblem } from './namespaces.js';
import type { FilledVm, MissingLayer } from './options.js';

/** Programs without which there is no partition. */
export interface PartitionTools {
  /** `manycore-enter` (crates/enter). */
  readonly enter: string;
  readonly bubblewrap: string;
}

/** The layers of this kernel. */
export interface KernelLayers {
  /** The version of Landlock's interface; 0: none. */
  readonly landlock: number;
  readonly seccomp: boolean;
  /** The version of control groups; 0: none can be made. */
  readonly groups: number;
  readonly groupsProblem: string;
}

/** Programs of a guest beside those of its sandbox. */
export interface GuestTools {
  readonly kernel: string;
  /** The library of clocks (crates/guest-clock). */
  readonly clock: string;
}

const leastLandlock = 2;
let known: { readonly tools: PartitionTools; readonly layers: KernelLayers } | undefined;

/** Returns the programs for partitions. Throws `PARTITION_UNAVAILABLE` with what is missing, and its package. */
export function partitionTools(allow: readonly MissingLayer[]): PartitionTools {
  known ??= find();
  checkLayers(known.layers, allow);
  return known.tools;
}

/** Throws `PARTITION_UNAVAILABLE` with the first layer that is missing, unless it is allowed. */
export function checkLayers(layers: KernelLayers, allow: readonly MissingLayer[]): void {
  for (const layer of layersOf(layers)) {
    if (layer.problem === undefined || allow.includes(layer.allow)) continue;
    throw unavailable(`${layer.problem}; allow: ['${layer.allow}'] goes on without`);
  }
}

/**
 * Returns the programs for guests. `kernel`: that of the options. Throws `PARTITION_UNAVAILABLE`, also without
 * Landlock, whatever the options allow: without it a guest could trace the process of bubblewrap beside it, which has no
 * filter.
 */
export function guestTools(kernel: string | undefined): GuestTools {
  checkArchitecture();
  const found = kernel ?? inPath('linux.uml');
  if (found === undefined) {
    throw unavailable(
      'linux.uml is not on PATH: install the package user-mode-linux, or name a kernel in worker.kernel',
    );
  }
  if (!isProgram(found)) throw unavailable(`the kernel ${found} is no program`);
  known ??= find();
  const landlock = layersOf(known.layers).find(({ allow }) => allow === 'no-landlock');
  if (landlock?.problem !== undefined) {
    throw unavailable(
      `User-mode Linux needs Landlock, and ${landlock.problem}: use engine 'gvisor'`,
    );
  }
  const clock = guestClockPath();
  if (!existsSync(clock)) throw unavailable(notBuilt(clock));
  return { kernel: found, clock };
}

/** Both engines need one: our filter for runsc lists its system calls. */
function checkArchitecture(): void {
  if (process.arch === 'x64') return;
  throw unavailable(`guests need an x64 machine, and this is ${process.arch}: use kind 'sandbox'`);
}

/** Returns the path of gVisor's runsc. Throws `PARTITION_UNAVAILABLE`. */
export function runscPath(): string {
  checkArchitecture();
  const found = inPath('runsc');
  if (found === undefined) throw unavailable('runsc is not on PATH: install the package runsc');
  return found;
}

/** Returns the engine to use: of two that are here, the first. */
export function engineOf({
  engine,
  kernel,
}: Pick<FilledVm, 'engine' | 'kernel'>): 'uml' | 'gvisor' {
  if (engine !== 'auto') return engine;
  const hasKernel = kernel !== undefined || inPath('linux.uml') !== undefined;
  return hasKernel || inPath('runsc') === undefined ? 'uml' : 'gvisor';
}

/** Returns why there can be no partition of this kind here; `undefined`: there can. */
export function partitionProblem(
  allow: readonly MissingLayer[] = [],
  kind: 'sandbox' | 'vm' = 'sandbox',
): CodedError | undefined {
  try {
    const refused = namespacesProblem(partitionTools(allow).bubblewrap);
    if (refused !== undefined) throw unavailable(refused);
    if (kind === 'vm') checkEngine();
    return undefined;
  } catch (error) {
    if (error instanceof CodedError) return error;
    throw error;
  }
}

function find(): NonNullable<typeof known> {
  if (process.platform !== 'linux') {
    throw unavailable(`partitions need Linux, and this is ${process.platform}`);
  }
  const tools = toolsFrom(enterPath(), inPath('bwrap'));
  return { tools, layers: probe(tools.enter) };
}

/** Checks the programs for partitions. Throws `PARTITION_UNAVAILABLE` with what is missing, and its package. */
export function toolsFrom(enter: string, bubblewrap: string | undefined): PartitionTools {
  if (!isProgram(enter)) throw unavailable(notBuilt(enter));
  if (bubblewrap === undefined) throw unavailable(noBubblewrap);
  return { enter, bubblewrap };
}

/** Explains a refusal of bubblewrap. `line`: its own words. */
export function refusedByBubblewrap(line: string): CodedError {
  const bubblewrap = inPath('bwrap');
  return unavailable((bubblewrap && namespacesProblem(bubblewrap)) ?? line);
}

const noBubblewrap = 'bwrap is not on PATH: install the package bubblewrap';

function probe(enter: string): KernelLayers {
  return parseLayers(spawnSync(enter, ['probe'], ownOf(spawnOptions)).stdout);
}

const spawnOptions = { encoding: 'utf8', timeout: 10_000 } as const;

/** A part of a sandbox, for reports. */
export interface PartitionLayer {
  readonly what: string;
  /** `undefined`: it is there. */
  readonly problem: string | undefined;
  readonly detail: string;
}

interface KernelLayer extends PartitionLayer {
  readonly allow: MissingLayer;
}

function layersOf({ landlock, seccomp, groups, groupsProblem }: KernelLayers): KernelLayer[] {
  return [
    {
      what: 'Landlock',
      problem:
        landlock < leastLandlock
          ? `this kernel has no Landlock of version ${leastLandlock} (Linux 5.19)`
          : undefined,
      detail: `version ${landlock}`,
      allow: 'no-landlock',
    },
    {
      what: 'seccomp',
      problem: seccomp ? undefined : 'this kernel has no seccomp',
      detail: 'works',
      allow: 'no-seccomp',
    },
    {
      what: 'control groups',
      problem:
        groups === 0
          ? `no control group can be made (${groupsProblem}): systemd's Delegate=yes gives the right to`
          : undefined,
      detail: `version ${groups}`,
      allow: 'no-cgroup',
    },
  ];
}

/** Returns the parts of a sandbox here, those that are missing too; empty on a system without any. */
export function partitionLayers(): readonly PartitionLayer[] {
  if (process.platform !== 'linux') return [];
  const [enter, bubblewrap] = [enterPath(), inPath('bwrap')];
  const hasEnter = isProgram(enter);
  return [
    {
      what: 'manycore-enter',
      problem: hasEnter ? undefined : notBuilt(enter),
      detail: enter,
    },
    {
      what: 'bubblewrap',
      problem: bubblewrap === undefined ? noBubblewrap : undefined,
      detail: bubblewrap ?? '',
    },
    ...(bubblewrap === undefined ? [] : [namespaces(bubblewrap)]),
    ...(hasEnter ? layersOf(probe(enter)) : []),
  ];
}

function namespaces(bubblewrap: string): PartitionLayer {
  return { what: 'namespaces', problem: namespacesProblem(bubblewrap), detail: 'work' };
}

function notBuilt(path: string): string {
  return `${path} is not there: install manycore's package for this platform, or build it with "npm run build:native"`;
}

function checkEngine(): void {
  if (engineOf({ engine: 'auto', kernel: undefined }) === 'uml') guestTools(undefined);
  else runscPath();
}

/** A program for virtual machines: its path, or the reason why it cannot be used. */
export type VmProgram = { readonly path: string } | { readonly problem: string };

/** The programs for virtual machines. `kernel`: that of the options. */
export function vmPrograms(kernel?: string): {
  readonly kernel: VmProgram;
  readonly runsc: VmProgram;
} {
  const found = (find: () => string): VmProgram => {
    try {
      return { path: find() };
    } catch (error) {
      return { problem: messageOf(error) };
    }
  };
  return { kernel: found(() => guestTools(kernel).kernel), runsc: found(runscPath) };
}

export function unavailable(reason: string, options?: ErrorOptions): CodedError {
  return new CodedError('PARTITION_UNAVAILABLE', `no partition can be made: ${reason}`, options);
}

function inPath(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Reads the line of `manycore-enter probe`; what is missing in it is missing here. */
export function parseLayers(text: unknown): KernelLayers {
  const value = parsed(text);
  const fields = new Map(typeof value === 'object' && value !== null ? Object.entries(value) : []);
  const number = (name: string): number => {
    const field: unknown = fields.get(name);
    return typeof field === 'number' ? field : 0;
  };
  return {
    landlock: number('landlock'),
    seccomp: fields.get('seccomp') === true,
    groups: number('groups'),
    groupsProblem: String(fields.get('groupsProblem') ?? 'manycore-enter does not answer'),
  };
}

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}
