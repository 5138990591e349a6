// The output of a partition: counted against its limit, and read for the line that names the cause of its end.

import { Socket } from 'node:net';
import type { ReachedLimit } from '../types.js';
import { CauseLine } from './own-output.js';

const mib = 2 ** 20;

export class OutputLimit {
  readonly cause = new CauseLine();
  readonly #limitMb: number;
  readonly #onExcess: () => void;
  #reached: ReachedLimit | undefined;

  /** `onExcess`: called once, when more has come. */
  constructor(limitMb: number, onExcess: () => void) {
    this.#limitMb = limitMb;
    this.#onExcess = onExcess;
  }

  /** `undefined`: it has not written too much. */
  get reached(): ReachedLimit | undefined {
    return this.#reached;
  }

  /** Returns a listener that passes on what comes from `streams`, until it is too much. */
  around<From extends { readonly stream: 'stdout' | 'stderr' }>(
    streams: readonly unknown[],
    listener: (text: string, from: From) => void,
  ): (text: string, from: From) => void {
    return (text, from) => {
      if (this.#reached !== undefined) return;
      if (from.stream === 'stderr') this.cause.add(text);
      listener(text, from);
      if (bytesOf(streams) > this.#limitMb * mib) this.#exceed();
    };
  }

  #exceed(): void {
    const reason = `it wrote more than ${this.#limitMb} MiB of output (outputMb)`;
    this.#reached = { name: 'output', reason };
    this.#onExcess();
  }
}

/** Bytes as they came: a text has another length, and one that is no UTF-8 more of them. */
function bytesOf(streams: readonly unknown[]): number {
  const bytes = streams.map((stream) => (stream instanceof Socket ? stream.bytesRead : 0));
  return bytes.reduce((sum, each) => sum + each, 0);
}
