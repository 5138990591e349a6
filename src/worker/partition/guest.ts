// A guest: a small Linux kernel (User-mode Linux) as the program of a sandbox, and the worker on it. The sandbox
// is the wall; the kernel keeps the worker from the system calls of this machine. Its root is what the sandbox
// shows.
// Not here: the command line of the kernel, and the first process on it (crates/enter/src/kernel.rs, guest.rs).

import { requireNative } from '../../native.js';
import type { Binding } from './files.js';
import { engineOf, type GuestTools, guestTools } from './layers.js';
import type { FilledSandbox, FilledVm } from './options.js';

export interface Guest extends GuestTools {
  readonly memoryMb: number;
  readonly fileMb: number;
  /** The core that it stays on. */
  readonly core: number | undefined;
  /** True: it gets the two descriptors of a channel. False: it gets input. */
  readonly hasChannel: boolean;
}

/** Places in the sandbox, as crates/enter has them. */
const folder = '/.manycore';
export const guestEnter = `${folder}/enter`;
export const guestKernel = `${folder}/linux`;
const guestClock = `${folder}/guest-clock.so`;

const mib = 2 ** 20;
/** The kernel's own file beside the memory of the guest: its text and data, and the file that names the program. */
const kernelMb = 16;
/** Memory outside of the guest: the kernel's process, and the page tables of all. */
const outsideMb = 64;
/** gVisor has threads of its own, and one for each thread inside. */
const gvisorProcesses = 15;
/** The part of the guest's memory that V8's old generation may have: kernel and node need the rest. */
const heapShare = 0.5;

/** The limit of V8's old generation that fits into the memory of a guest, in MiB. */
export function guestHeapMb({ memoryMb }: FilledVm): number {
  return Math.floor(memoryMb * heapShare);
}

/** Returns a guest for one program; at its end follows `leaveCore`. Throws `PARTITION_UNAVAILABLE`. */
export function guestOf(vm: FilledVm, hasChannel: boolean): Guest {
  const { memoryMb, fileMb, core } = vm;
  const tools = guestTools(vm.kernel);
  return { ...tools, memoryMb, fileMb, core: takeCore(core), hasChannel };
}

/** Guests of this thread by their core. */
const guestsByCore = new Map<number, number>();
const guestsOn = (core: number): number => guestsByCore.get(core) ?? 0;

/** `each`: the core that has the fewest guests. Programs with one guest each begin at different cores. */
function takeCore(wanted: FilledVm['core']): number | undefined {
  const [core] = wanted === 'each' ? coresByGuests() : [wanted];
  if (core !== undefined) guestsByCore.set(core, guestsOn(core) + 1);
  return core;
}

function coresByGuests(): number[] {
  const cores = requireNative().allowedCores();
  const first = process.pid % cores.length;
  const inTurn = [...cores.slice(first), ...cores.slice(0, first)];
  return inTurn.sort((a, b) => guestsOn(a) - guestsOn(b));
}

export function leaveCore(core: number | undefined): void {
  if (core !== undefined) guestsByCore.set(core, guestsOn(core) - 1);
}

/**
 * Returns the sandbox around a guest. The memory of one on User-mode Linux is a file in its /tmp, and it has Landlock
 * whatever is allowed (`guestTools`).
 */
export function sandboxAround(vm: FilledVm): FilledSandbox {
  const { read, write, env, memoryMb, fileMb, resultMb, outputMb, allow } = vm;
  const isGvisor = engineOf(vm) === 'gvisor';
  return {
    ...{ kind: 'sandbox', network: 'none', cpuPercent: 100 },
    maxProcesses: isGvisor ? gvisorProcesses : 0,
    ...{ read, write, env, resultMb, outputMb },
    allow: isGvisor ? allow : allow.filter((layer) => layer !== 'no-landlock'),
    memoryMb: memoryMb + outsideMb,
    fileMb: Math.max(memoryMb + kernelMb, fileMb),
  };
}

/** Options of bubblewrap for a guest: the place at which its first process finds the /tmp of the sandbox. */
export const guestFolders: readonly string[] = ['--dir', `${folder}/tmp`];

export function guestBindings({ kernel, clock }: Guest, enter: string): readonly Binding[] {
  return [
    { from: enter, to: guestEnter },
    { from: kernel, to: guestKernel },
    { from: clock, to: guestClock },
  ];
}

/** Options of `manycore-enter enter` for a guest. */
export function guestWords({ memoryMb, fileMb, core, hasChannel }: Guest): readonly string[] {
  return [
    ...['--kernel', guestKernel, '--memory-mb', `${memoryMb}`],
    ...['--guest-file-bytes', `${fileMb * mib}`],
    ...(core === undefined ? [] : ['--core', `${core}`]),
    ...(hasChannel ? ['--channel'] : []),
  ];
}
