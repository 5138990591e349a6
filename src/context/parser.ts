// The parser, loaded when the first function is analysed: a host rarely does, and loading it would
// lengthen its start (bench/cases/cold.js).

import { createRequire } from 'node:module';
import type * as Acorn from 'acorn';

const require = createRequire(import.meta.url);
let acorn: typeof Acorn | undefined;

/** As `parse` of acorn. */
export function parse(source: string, options: Acorn.Options): Acorn.Program {
  acorn ??= loadAcorn();
  return acorn.parse(source, options);
}

function loadAcorn(): typeof Acorn {
  return require('acorn');
}
