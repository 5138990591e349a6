// Compares the captures of a function with another call of it, though it and its helpers were made anew. The
// numbers that identify functions, classes and symbols for peers differ then. So the function is written by
// an exporter of its own, which counts from the beginning.

import { nodeCrypto } from '../../lib/index.js';
import { ExporterState } from '../own-exporter.js';
import type { AnyFunction, BufferCarrier, FunctionSnapshot } from '../types.js';
import { format } from '../wire.js';
import { ContextExporter } from './exporter.js';

/**
 * Returns equal texts for calls that send the same. `snapshot`: of `fn`, with state. `undefined`: its content
 * cannot be compared.
 */
export function fingerprint(
  fn: AnyFunction,
  { state, parcel }: FunctionSnapshot,
  buffers: BufferCarrier,
): string | undefined {
  if (state === undefined || parcel !== undefined) return undefined;
  const hash = nodeCrypto().createHash('sha1');
  if (state[0] === format.slots) return hash.update(state).digest('base64');
  try {
    const exporter = new ContextExporter({ buffers }, new ExporterState(false, 0));
    const written = exporter.exportFunction(fn);
    for (const id of written.definitions) hash.update(exporter.definition(id));
    return hash.update(written.state ?? '').digest('base64');
  } catch {
    return undefined; // a hook of the user's threw this time
  }
}
