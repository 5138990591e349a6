// Both halves of a transfer in one process.

import { Session } from 'node:inspector';
import { createExporter, createImporter } from '../../../src/context/index.js';

/** A function of a test. */
export type Call = (...args: never[]) => unknown;

/** A pair of halves in one process: exports, and calls what the other half makes of it. */
export function makePair() {
  const exporter = createExporter();
  const importer = createImporter({ exporter: createExporter() });
  const sent = new Set<number>();
  return {
    exporter,
    /** Number of definitions that were sent so far. */
    get definitions(): number {
      return sent.size;
    },
    async call(fn: Call, ...args: unknown[]): Promise<unknown> {
      const { id, definitions, state } = exporter.exportFunction(fn);
      for (const each of definitions) {
        if (sent.has(each)) continue;
        sent.add(each);
        await importer.define(each, exporter.definition(each));
      }
      return importer.importFunction(id, state)(...args);
    },
  };
}

/** Counts the messages to the inspector while `body` runs. */
export async function messagesIn(body: () => Promise<void>): Promise<number> {
  const { prototype } = Session;
  const { post } = prototype;
  let count = 0;
  prototype.post = function (this: Session, ...args: unknown[]): void {
    count += 1;
    Reflect.apply(post, this, args);
  };
  try {
    await body();
  } finally {
    prototype.post = post;
  }
  return count;
}
