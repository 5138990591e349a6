// The sending half of the context layer, with what the receiving half needs of it now and then. A program loads it
// at once, a worker at its first use (late.ts).

import { seenBy } from './closures/inner-names.js';
import { canInspect, inspectSelf } from './closures/inspector.js';
import { ContextExporter } from './encode/exporter.js';
import { provideSendingHalf } from './late.js';
import { sentinelOfCjs } from './modules/references.js';
import { analysisOf, scriptUrl } from './modules/scripts.js';
import type { ExporterOptions, ExporterState } from './own-exporter.js';
import { atLoad } from './text/at-load.js';
import { readCode } from './text/code.js';
import { withOriginals } from './toolchains/stack.js';
import type { AnyFunction, Exporter } from './types.js';

/** Makes the sending half: one for all workers in the parent, one in a worker. `state`: that of the exporter. */
export function createExporter(options: ExporterOptions = {}, state?: ExporterState): Exporter {
  return new ContextExporter(options, state);
}

/** The URL of the script of `fn`, '' for code without one; `undefined`: it cannot be read, or is native. */
function scriptOf(fn: AnyFunction): string | undefined {
  const location = canInspect() ? inspectSelf().capture(fn).location : undefined;
  return location && scriptUrl(location.scriptId);
}

/** All that the receiving half uses of it. */
export const half = {
  analysisOf,
  atLoad,
  canInspect,
  createExporter,
  inspectSelf,
  readCode,
  scriptOf,
  seenBy,
  sentinelOfCjs,
  withOriginals,
};

provideSendingHalf(half);
