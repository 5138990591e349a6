// The start of a program in a partition of any kind: the checks before it, its command line, and its descriptors.
// Not here: the process that is started, and its end (sandbox.ts for workers, program.ts for programs of the user).

import { readlinkSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { invalid } from '../../lib/index.js';
import { commandLine, firstChannelFd, heapMb } from './command-line.js';
import { type Binding, isWithin } from './files.js';
import { guestHeapMb, guestOf, leaveCore, sandboxAround } from './guest.js';
import { gvisorLine } from './gvisor.js';
import { engineOf, partitionTools, vmPrograms } from './layers.js';
import type { FilledPartition, FilledVm } from './options.js';

/** A program of Node for a partition. */
export interface NodeProgram {
  /** The files that it gets beside those of the options. */
  readonly bindings: readonly Binding[];
  /** The same for files of the user, which may lie in folders that it can write. */
  readonly shown?: readonly Binding[];
  /** Flags of Node, its module and the arguments. `--max-old-space-size` is added. */
  readonly words: readonly string[];
  /** Limit of V8's old generation in MiB; 0: as fits into the partition. */
  readonly maxHeapMb: number;
  /** The two descriptors of its channel; `undefined`: it has none, and takes the input of this process. */
  readonly channel: readonly (number | 'pipe')[] | undefined;
}

export interface PartitionStart {
  /** The program, and its arguments. */
  readonly line: readonly string[];
  /** Descriptors, the last for the status of `manycore-enter run`. */
  readonly stdio: readonly (number | 'ignore' | 'pipe' | 'inherit')[];
  /** The descriptor that takes the input of a program (guest-input.ts); `undefined`: `run` passes it on. */
  readonly inputFd: number | undefined;
  /** To be called at its end. */
  readonly leave: () => void;
}

/** Throws `OPTION_INVALID`, `PARTITION_UNAVAILABLE`. */
export function partitionStart(partition: FilledPartition, program: NodeProgram): PartitionStart {
  const { bindings, shown = [], words, maxHeapMb, channel } = program;
  checkWrites(partition, bindings);
  const isVm = partition.kind === 'vm';
  const ownHeapMb = isVm ? guestHeapMb(partition) : heapMb(partition);
  const heap = `--max-old-space-size=${maxHeapMb > 0 ? maxHeapMb : ownHeapMb}`;
  const command = [process.execPath, heap, ...words];
  const lastFd = channel === undefined ? 2 : firstChannelFd + channel.length - 1;
  const hasChannel = channel !== undefined;
  const own = { bindings: [...bindings, ...shown], command, lastFd, hasInput: !hasChannel };
  const plain = {
    stdio: [channel === undefined ? 'inherit' : 'ignore', ...outputs, ...(channel ?? []), 'pipe'],
    inputFd: undefined,
    leave: () => {},
  } as const;
  if (!isVm) return { ...plain, line: commandLine({ ...own, sandbox: partition }) };
  const sandbox = sandboxAround(partition);
  if (engineOf(partition) === 'gvisor') {
    const line = gvisorLine({ ...own, sandbox, lastFd: 2 }, partition.fileMb, hasChannel);
    // A channel comes as stdin and stdout (crates/enter/src/gvisor.rs).
    return hasChannel
      ? { ...plain, line, stdio: [...channel, 'pipe', 'pipe'] }
      : { ...plain, line };
  }
  const guest = guestOf(partition, hasChannel);
  const leave = (): void => leaveCore(guest.core);
  if (hasChannel) return { ...plain, line: commandLine({ ...own, sandbox, guest }), leave };
  const inputFd = firstChannelFd;
  const line = commandLine({ ...own, sandbox, guest, lastFd: inputFd, hasInput: false });
  return { line, stdio: ['ignore', ...outputs, 'pipe', 'pipe'], inputFd, leave };
}

const outputs = ['pipe', 'pipe'] as const;

/** The programs of partitions that were checked, by their options: the options of a pool are one object. */
const checked = new WeakMap<FilledPartition, string>();

/** Refuses folders in which a partition could change what the next one runs. */
function checkWrites(partition: FilledPartition, bindings: readonly Binding[]): void {
  if (partition.write.length === 0) return;
  const programs = programsOf(partition);
  // No partition that has passed can change a link on the way to these programs: once is enough.
  if (checked.get(partition) === programs.join('\n')) return;
  const files = [...bindings.map(({ from }) => from), ...programs.flatMap(placesOf)];
  for (const path of partition.write) {
    const [folder = path] = placesOf(path).slice(-1);
    const own = files.find((file) => isWithin(file, folder) || isWithin(folder, file));
    if (own !== undefined) throw invalid('worker.write', path, `apart from ${own}`);
  }
  checked.set(partition, programs.join('\n'));
}

/** The programs that run outside of a partition, or around it. */
function programsOf(partition: FilledPartition): readonly string[] {
  const { enter, bubblewrap } = partitionTools(partition.allow);
  return [enter, bubblewrap, ...(partition.kind === 'vm' ? programsOfVm(partition) : [])];
}

function programsOfVm({ kernel }: FilledVm): readonly string[] {
  const programs = Object.values(vmPrograms(kernel));
  return programs.flatMap((program) => ('path' in program ? program.path : []));
}

/** Links that one path may have on its way: as many as Linux follows. */
const maxLinks = 40;

/** Returns the places that decide what a path leads to: each link on its way, and its target, which comes last. */
function placesOf(path: string): readonly string[] {
  const links: string[] = [];
  let at = resolve(path);
  for (let count = 0; count < maxLinks; count += 1) {
    const link = firstLinkOf(at);
    if (link === undefined) break;
    links.push(link.path);
    at = resolve(dirname(link.path), link.target, link.rest);
  }
  return [...links, at];
}

interface LinkOnWay {
  readonly path: string;
  readonly target: string;
  /** The part of the path behind it. */
  readonly rest: string;
}

/** The uppermost link of a path: what it leads to has to be known before those below it can be. */
function firstLinkOf(path: string): LinkOnWay | undefined {
  const above = dirname(path);
  if (above === path) return undefined;
  const found = firstLinkOf(above);
  if (found !== undefined) return { ...found, rest: join(found.rest, basename(path)) };
  try {
    return { path, target: readlinkSync(path), rest: '.' };
  } catch {
    return undefined;
  }
}
