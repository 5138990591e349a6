// The parser, loaded when the first function is analysed: a worker rarely does, and loading it would lengthen
// its start (bench/cases/cold.js).

import { createRequire } from 'node:module';
import type * as Acorn from 'acorn';
import { CodedError } from '../../errors.js';
import { prototypeRemedy } from '../../lib/index.js';

const require = createRequire(import.meta.url);
let acorn: typeof Acorn | undefined;

/** Parses like `parse` of acorn: throws a SyntaxError. `TRANSFER_UNREADABLE` when acorn cannot be loaded. */
export function parse(source: string, options: Acorn.Options): Acorn.Program {
  acorn ??= loadAcorn();
  return acorn.parse(source, options);
}

function loadAcorn(): typeof Acorn {
  try {
    return require('acorn');
  } catch (cause) {
    const [why = ''] = String(cause).split('\n');
    const wayOut =
      prototypeRemedy(cause) ??
      'install the dependencies of manycore (npm install), and in a bundle leave acorn external';
    throw new CodedError(
      'TRANSFER_UNREADABLE',
      `functions cannot be read without the package acorn, which does not load here (${why}): ${wayOut}`,
      { cause },
    );
  }
}
