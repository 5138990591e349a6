// The parent's sending half of the context layer: one for all workers of this thread, so that a function
// has one id for all of them and its code is analysed once.

import { type BlockStore, parentBlocks } from '../../channels/index.js';
import {
  type BufferCarrier,
  type BufferName,
  createExporter,
  type Exporter,
  isCloneable,
} from '../../context/index.js';
import { bufferCarrier, cloned } from '../both/buffers.js';
import type { Moving } from './moving.js';

/** Resources that the workers of a snapshot share with this thread. */
export interface Reach {
  /** Memory of `shared()`, and large values; otherwise they are copied. */
  readonly hasSharedMemory: boolean;
  /** All memory: they are threads of this process. */
  readonly isThread: boolean;
  /** The transfer list of the call. */
  readonly moving?: Moving;
}

/** Carries buffers to workers with that reach. */
export class ParentBuffers implements BufferCarrier {
  readonly #reach: Reach;
  readonly #carrier = bufferCarrier(() => this.blocks);

  constructor(reach: Reach) {
    this.#reach = reach;
  }

  /** Returns a carrier for one call, with its transfer list. */
  withMoving(moving: Moving): ParentBuffers {
    return new ParentBuffers({ ...this.#reach, moving });
  }

  /** Blocks of this thread's arena, while it has one. */
  get blocks(): BlockStore | undefined {
    return parentBlocks();
  }

  get isMoving(): boolean {
    return this.#reach.moving !== undefined;
  }

  name(buffer: ArrayBufferLike): BufferName | undefined {
    this.#reach.moving?.find(buffer);
    return this.#reach.hasSharedMemory ? this.#carrier.name(buffer) : undefined;
  }

  find(name: BufferName): ArrayBufferLike {
    return this.#carrier.find(name);
  }

  carry(value: object): ReturnType<NonNullable<BufferCarrier['carry']>> {
    const { moving, isThread } = this.#reach;
    const moved = moving?.find(value);
    if (!isThread) return undefined;
    if (moved !== undefined) return { moved };
    return isCloneable(value) ? cloned : undefined;
  }
}

/** For values that are sent to no pool's workers: answers, messages. */
export const parentBuffers = new ParentBuffers({ hasSharedMemory: true, isThread: false });

let exporter: Exporter | undefined;

export function parentExporter(): Exporter {
  exporter ??= createExporter({ buffers: parentBuffers, ownsCode: true });
  return exporter;
}
