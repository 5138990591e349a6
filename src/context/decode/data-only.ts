// Takes data alone, from a peer whose code is not trusted. A value that would bring code to this side (a function,
// a class, an instance of one, a module, a built-in function) is refused before any part of it is made.
// Not here: the refusal on the side of the peer, with a better message for honest code (session.ts).

import { CodedError } from '../../errors.js';
import { parsePayload, special } from '../protocol.js';
import type { Importer } from '../types.js';
import { asCorrupt, corrupt, format, read } from '../wire.js';
import { decode } from './decode.js';
import type { Memory } from './peer-memory.js';

/** Makes the receiving half for a peer that may send data alone. */
export function createDataImporter(): Importer {
  return { define: refuseCode, forget() {}, importFunction: refuseCode, importValue };
}

/** Throws `PARTITION_CODE` for the bytes of a value with code in it, `TRANSFER_CORRUPT`. */
export function checkData(bytes: Uint8Array): void {
  const { format: as, value } = read(bytes, undefined);
  if (as === format.plain) return;
  if (as !== format.graph) throw corrupt('a value was expected');
  checkSpecials(parsePayload(value, bytes.byteLength));
}

function importValue(bytes: Uint8Array): unknown {
  try {
    const { format: as, value } = read(bytes, undefined);
    if (as === format.plain) return value;
    if (as !== format.graph) throw corrupt('a value was expected');
    const payload = parsePayload(value, bytes.byteLength);
    checkSpecials(payload);
    return decode(payload, nothingKept).root;
  } catch (error) {
    throw asCorrupt(error);
  }
}

/** Specials that hold texts, numbers and bytes. */
const dataKinds: ReadonlySet<unknown> = new Set([
  special.registeredSymbol,
  special.error,
  special.url,
  special.searchParams,
  special.buffer,
  special.boxedSymbol,
]);
const errorClasses: ReadonlySet<unknown> = new Set(
  'Error TypeError RangeError SyntaxError ReferenceError EvalError URIError AggregateError'.split(
    ' ',
  ),
);

function checkSpecials({
  specials,
  stores,
}: {
  readonly specials: readonly (readonly unknown[])[];
  readonly stores: readonly unknown[];
}): void {
  if (stores.length > 0) refuseCode();
  for (const [kind, name] of specials) {
    if (!dataKinds.has(kind)) refuseCode();
    // Any other global would be called as a constructor.
    if (kind === special.error && !errorClasses.has(name)) refuseCode();
  }
}

function refuseCode(): never {
  throw new CodedError(
    'PARTITION_CODE',
    'a value from a partition has code in it, or an instance of a class: return plain data, with its functions left inside',
  );
}

/** In place of the memory between payloads: data needs none. */
const nothingKept: Memory = {
  original: refuseCode,
  cached: refuseCode,
  remember: refuseCode,
  drop: refuseCode,
  instantiate: refuseCode,
  finish: refuseCode,
  own: refuseCode,
  instanceOf: refuseCode,
  heritageOf: refuseCode,
  hasCode: refuseCode,
  versionOf: refuseCode,
  setVersion: refuseCode,
  closure: refuseCode,
  imported: refuseCode,
  unusableImport: refuseCode,
  importedCell: refuseCode,
  requireFor: refuseCode,
  moduleFor: refuseCode,
  parcel: refuseCode,
};
