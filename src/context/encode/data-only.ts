// In place of the writer of functions, for values that must be data: each part that would bring code is refused, with
// the path to it. Not here: the same check by the receiver, who does not trust this one (decode/data-only.ts).

import type { CodedError } from '../../errors.js';
import { functionName } from '../../lib/index.js';
import { type Path, transferError } from '../values/refuse.js';
import type { FunctionEncoder, Graph } from './encode.js';

const remedy =
  'a partition sends data alone: return what it returns, or a plain object in its place';

function refusal(path: Path, what: string): CodedError {
  return transferError('PARTITION_CODE', path, `it has ${what}: ${remedy}`);
}

export const dataOnly: FunctionEncoder = {
  encodeFunction(fn, { path }: Graph) {
    throw refusal(path, `the function or class ${functionName(fn) || 'without a name'}`);
  },
  encodeModule: () => undefined,
  frozenImport: () => undefined,
  encodeSymbol(value, { path }: Graph) {
    throw refusal(path, `the symbol ${String(value)}`);
  },
  hiddenState: () => undefined,
  around: () => undefined,
  identify: () => {
    throw refusal(['the result'], 'a function or symbol');
  },
};
