// Shared memory for values: a call, a capture or a result that holds it passes its place in the arena, and
// both sides see the same bytes, without a copy. Without shared memory it is an ordinary buffer, which is
// copied like any other.

import { type BlockStore, parentBlocks, shareBlocks } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { inWords } from '../../lib/index.js';
import { callNative, nativeBinding, nativeProblem } from '../../native.js';
import { textOf } from '../../proc/index.js';
import { refuseThreadSpace } from './thread-space.js';
import { transactionSettings } from './transaction-settings.js';

/** Inside a worker: the worker's part of the arena of its parent. */
let workerBlocks: BlockStore | undefined;

/** Sets the arena part of this process; for the worker's entry. */
export function allocateFrom(blocks: BlockStore | undefined): void {
  workerBlocks = blocks;
}

/**
 * Allocates a buffer in shared memory: of `source` bytes, zeroed, or with a copy of the bytes of `source`.
 * It lives as long as any process can reach it. Writes on one side are seen by the other, at any time: a
 * view is not a snapshot. Throws `OPTION_INVALID`, `SHARED_MEMORY_FULL`.
 */
export function shared(source: number | Uint8Array): Buffer {
  const bytes = typeof source === 'number' ? undefined : source;
  const sizeBytes = typeof source === 'number' ? source : source?.byteLength;
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) {
    throw new CodedError(
      'OPTION_INVALID',
      `shared() got ${inWords(source)}: give a size in bytes or a Uint8Array`,
    );
  }
  const buffer = Buffer.from(allocate(sizeBytes));
  if (bytes !== undefined) buffer.set(bytes);
  return buffer;
}

/** True: a view of `buffer` reaches workers of this process without being copied. */
export function isSharedMemory(buffer: ArrayBufferLike): boolean {
  const blocks = workerBlocks ?? parentBlocks();
  return blocks?.sharedBlock(buffer) !== undefined;
}

/** Features of the kernel without which there are no channels over shared memory. */
const neededFeatures = ['memfd', 'eventfd'] as const;
let isKnownToWork = false;
/** More than any segment has (channels/shm/blocks.ts): mapped, not used. */
const segmentBytes = 2 ** 36;

/** Read before the kernel is probed: it ends a process that makes a larger file (SIGXFSZ). */
function largestFileBytes(): number {
  const [, soft] = /^Max file size +(\d+) /m.exec(textOf('/proc/self/limits')) ?? [];
  return soft === undefined ? Infinity : Number(soft);
}

/**
 * Returns the reason why there is no shared memory here: `NATIVE_MISSING`, or `NATIVE_REFUSED` with the
 * kernel's message; `undefined` when it works. A refusal is probed again each time: descriptors may be free
 * later.
 */
export function sharedMemoryProblem(): CodedError | undefined {
  const binding = nativeBinding();
  if (binding === undefined || isKnownToWork) return nativeProblem();
  const maxBytes = largestFileBytes();
  if (maxBytes < segmentBytes) {
    return new CodedError(
      'NATIVE_REFUSED',
      `shared memory counts as a file, and a file may have ${maxBytes} bytes here: raise ulimit -f, or use the other channels`,
    );
  }
  const answers = binding.probeKernel();
  for (const feature of neededFeatures) {
    if (answers[feature] === '') continue;
    return new CodedError(
      'NATIVE_REFUSED',
      `the kernel refuses ${feature} (${answers[feature]}): allow it, or use the other channels`,
    );
  }
  isKnownToWork = true;
  return undefined;
}

/**
 * The descriptor of the program's transactional memory, for a process that starts now; `undefined`: there is no shared
 * memory here. Throws `NATIVE_REFUSED` where no descriptor is left: the process would have a memory of its own;
 * `OPTION_INVALID`.
 */
export function spaceFd(): number | undefined {
  const binding = nativeBinding();
  if (binding === undefined || sharedMemoryProblem() !== undefined) return undefined;
  const { memoryBytes } = transactionSettings();
  return callNative(() => binding.spaceFd(memoryBytes));
}

/**
 * Takes over the descriptor that the starter of this process has passed: its memory is ours. `undefined`: it has none
 * for several processes, and this one must not have another.
 */
export function adoptSpace(fd: number | undefined): void {
  if (fd === undefined) refuseThreadSpace();
  else callNative(() => nativeBinding()?.adoptSpace(fd));
}

let isOfPartition = false;

/** Refuses the transactional memory to this process, whose code is not trusted. */
export function refuseSpace(): void {
  isOfPartition = true;
}

/** Returns the reason why there is no transactional memory here; see `sharedMemoryProblem`. */
export function spaceProblem(): CodedError | undefined {
  if (!isOfPartition) return sharedMemoryProblem();
  return new CodedError(
    'STM_OTHER_MEMORY',
    'a sandbox has no part in the transactional memory of the program: pass values, and return them',
  );
}

/** Lets transactions that sleep go on where a worker of this process has ended in the middle of its commit. */
export function noteEnd(): void {
  // Words that a worker has forged are no reason to fail here: others find the end of that worker within a second.
  try {
    nativeBinding()?.noteEnd();
  } catch {}
}

function allocate(sizeBytes: number): ArrayBuffer {
  if (workerBlocks !== undefined) return workerBlocks.allocate(sizeBytes);
  if (sizeBytes === 0 || sharedMemoryProblem() !== undefined) return new ArrayBuffer(sizeBytes);
  const share = shareBlocks();
  try {
    return share.blocks.allocate(sizeBytes);
  } finally {
    share.leave();
  }
}
