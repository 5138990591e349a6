// Imports of variables that their module assigns later: `import { count, increment } from './counter.js'`. An
// import shows the present value of the variable, so in a worker the function holds a cell that reads it from
// the module. Its text is that of a function with cells (cells.ts).
// Not here: which exports change later (reach.ts).

import type { Binding } from '../text/scope.js';
import { type ExportedVariable, exportedVariable } from './reach.js';

const variables = new WeakMap<Binding, ExportedVariable | 'constant'>();

/**
 * Names the variable that the import `binding` of the module at `url` shows; `undefined`: its value never
 * changes.
 */
export function liveImport(binding: Binding | undefined, url: string): string | undefined {
  if (binding?.kind !== 'import' || binding.imported === '*') return undefined;
  const known = variables.get(binding);
  const found =
    known ?? exportedVariable(binding.source ?? '', binding.imported ?? '', url) ?? 'constant';
  if (known === undefined) variables.set(binding, found);
  return found === 'constant' ? undefined : `live ${found.url}:${found.binding.start}`;
}
