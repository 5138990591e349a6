// The parent's sending half of the context layer: one for all hosts of this thread, so that a
// function has one id wherever it goes and its code is analysed once.

import { type BlockStore, parentBlocks } from '../channels/index.js';
import {
  type BufferCarrier,
  type BufferName,
  createExporter,
  type Exporter,
} from '../context/index.js';
import { bufferCarrier } from './buffers.js';

/**
 * Names shared memory in snapshots. While `isNaming` is false it is copied: the snapshot is for hosts
 * that share none.
 */
class ParentBuffers implements BufferCarrier {
  isNaming = true;
  readonly #carrier = bufferCarrier(() => this.blocks);

  /** Of this thread's arena, while it has one. */
  get blocks(): BlockStore | undefined {
    return parentBlocks();
  }

  name(buffer: ArrayBufferLike): BufferName | undefined {
    return this.isNaming ? this.#carrier.name(buffer) : undefined;
  }

  find(name: BufferName): ArrayBufferLike {
    return this.#carrier.find(name);
  }
}

export const parentBuffers = new ParentBuffers();

let exporter: Exporter | undefined;

export function parentExporter(): Exporter {
  exporter ??= createExporter({ buffers: parentBuffers });
  return exporter;
}
