// Loads the native binary once for each thread and says what is missing when it does not load. All
// of manycore works without it, over other channels: callers ask `nativeBinding()` and take
// `undefined` for an answer. Not here: what the binding is used for (channels/shm, host).

import { createRequire } from 'node:module';
import { CodedError, type ErrorCode, errorCodes } from './errors.js';

/** A mapped segment (crates/node/src/segment.rs). */
export interface NativeSegment {
  readonly ringBytes: number;
  readonly slotCount: number;
  readonly owner: number;
  readonly requestAt: number;
  readonly replyAt: number;
  /** The whole segment; mapped as long as the buffer is reachable. */
  buffer(): ArrayBuffer;
  /** The ring as Rust speaks it, while nobody else writes, or reads, on that side. */
  tryPush(isParent: boolean, kind: number, task: number, target: number, body: Buffer): boolean;
  tryPop(isParent: boolean): NativeFrame | null;
}

export interface NativeFrame {
  readonly kind: number;
  readonly task: number;
  readonly target: number;
  readonly body: Buffer;
  readonly isSpilled: boolean;
}

/** The channels' part in this thread's event loop (crates/node/src/event_loop.rs). */
export interface NativeLoop {
  /** The eventfd that wakes this loop: the loop's own, open until `releaseBell` and while ends use it. */
  holdBell(): number;
  releaseBell(): void;
  /** Watches an end; `bell` -1: the loop's own eventfd. Takes both descriptors over. */
  attach(
    segment: NativeSegment,
    isParent: boolean,
    bell: number,
    peerBell: number,
    maySpin: boolean,
  ): number;
  detach(end: number): void;
  /**
   * Two int32 of an end: what JavaScript wants, 1 to keep the event loop alive, else 0, and whether
   * the end does so. The loop looks at the first when it is about to sleep.
   */
  refWords(end: number): ArrayBuffer;
  /** Makes all ends do now what their first word says. */
  settleRefs(): void;
  ring(end: number): void;
}

/** Descriptors by number, with an owner: what is not released is closed with this object. */
export interface NativeDescriptors {
  createSegment(ringBytes: number, slotCount: number, owner: number): number;
  createEventfd(): number;
  /** A second descriptor of the same file. */
  duplicate(fd: number): number;
  /** Gives `fd` away: whoever gets the number closes it. */
  release(fd: number): number;
  closeAll(): void;
}

/** Blocks for payloads (crates/node/src/arena.rs); offsets of -1 say that no memory is left. */
export interface NativeArena {
  fd(): number;
  takeOwner(): number;
  retireOwner(owner: number): void;
  place(bytes: Uint8Array): number;
  allocate(sizeBytes: number): number;
  free(offset: number): void;
  /** When the buffer was collected and it has a key, `takeCollected` has the key. */
  view(owner: number, offset: number, sizeBytes: number, collectedKey?: number): ArrayBuffer;
  takeCollected(): number[];
  readonly usedCount: number;
  release(): void;
}

/** What the kernel says to each feature: empty when it works, else why not. */
export interface KernelFeatures {
  readonly memfd: string;
  readonly eventfd: string;
  readonly futex: string;
  readonly pidfd: string;
}

/** How many cores this process may count on, and the sentence that explains the number. */
export interface GrantedCores {
  readonly count: number;
  readonly reason: string;
}

/** Everything that the binary exports; `parseBinding` holds the names. */
export interface NativeBinding {
  readonly NativeSegment: { open(fd: number): NativeSegment };
  readonly NativeDescriptors: new () => NativeDescriptors;
  readonly NativeArena: {
    /** `onCollected` is called when `takeCollected` has keys. */
    ofProcess(onCollected: () => void): NativeArena;
    open(fd: number, owner: number, onCollected: () => void): NativeArena;
  };
  readonly NativeLoop: new (deliver: () => void) => NativeLoop;
  /** Byte offsets of the words of `wordAt` (channels/shm/layout.ts), in its order. */
  layoutOffsets(): number[];
  grantedCores(): GrantedCores;
  hasCpuQuota(): boolean;
  /** The cores that this thread may run on, ascending; none where the system does not say. */
  allowedCores(): number[];
  pinThread(cpus: readonly number[]): void;
  currentCpu(): number;
  /** The number of this thread in the system; 0 when unknown. */
  threadId(): number;
  /**
   * Ends this process when its parent, process `pid`, ends, and when the parent's `thread` does,
   * which must be the one that started this process; 0: only with the process. Call it on the main
   * thread.
   */
  watchParent(pid: number, thread: number): 'pidfd' | 'death-signal';
  probeKernel(): KernelFeatures;
}

const exportNames = [
  'NativeSegment',
  'NativeDescriptors',
  'NativeArena',
  'NativeLoop',
  'layoutOffsets',
  'grantedCores',
  'hasCpuQuota',
  'allowedCores',
  'pinThread',
  'currentCpu',
  'threadId',
  'watchParent',
  'probeKernel',
] as const satisfies readonly (keyof NativeBinding)[];

/** Holds the loaded module against `NativeBinding`; throws the name that is missing. */
function parseBinding(loaded: unknown): NativeBinding {
  for (const name of exportNames) {
    const found: unknown = Reflect.get(Object(loaded), name);
    if (typeof found !== 'function') {
      throw new Error(`it exports no ${name}: it belongs to another version of manycore`);
    }
  }
  return loaded as NativeBinding;
}

type Loaded =
  | { readonly binding: NativeBinding; readonly problem?: undefined }
  | { readonly binding?: undefined; readonly problem: CodedError };

let loaded: Loaded | undefined;

function missing(reason: string, cause?: unknown): Loaded {
  const message =
    `the native binary does not load (${reason}): shared memory is off, other channels work. ` +
    `On Linux with Rust installed "npm run build:native" in the package makes it`;
  return { problem: new CodedError('NATIVE_MISSING', message, { cause }) };
}

function load(): Loaded {
  if (process.env['MANYCORE_NATIVE'] === 'off') return missing('MANYCORE_NATIVE=off');
  const override = process.env['MANYCORE_NATIVE'] ?? '';
  const platform = `${process.platform}-${process.arch}`;
  const path = override === '' ? `../../prebuilds/${platform}/manycore.node` : override;
  try {
    return { binding: parseBinding(createRequire(import.meta.url)(path)) };
  } catch (error) {
    const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    return missing(`${platform}: ${text}`, error);
  }
}

/** The binary, or `undefined` when it is missing; `nativeProblem` says why. */
export function nativeBinding(): NativeBinding | undefined {
  loaded ??= load();
  return loaded.binding;
}

/** Why there is no binary: `NATIVE_MISSING` with the loader's text and the way out. */
export function nativeProblem(): CodedError | undefined {
  loaded ??= load();
  return loaded.problem;
}

/** Like `nativeBinding`, for callers that cannot go on without it. Throws `nativeProblem()`. */
export function requireNative(): NativeBinding {
  loaded ??= load();
  if (loaded.problem !== undefined) throw loaded.problem;
  return loaded.binding;
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(errorCodes, code);
}

/** Calls into the binary; an error with one of our codes becomes a `CodedError`. */
export function callNative<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error) || error instanceof CodedError) throw error;
    const code: unknown = Reflect.get(error, 'code');
    if (!isErrorCode(code)) throw error;
    throw new CodedError(code, error.message, { cause: error });
  }
}
