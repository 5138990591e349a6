// Takes data alone, from a peer whose code is not trusted. A value that would bring code to this side (a function,
// a class, an instance of one, a module, a built-in function) is refused before any part of it is made.
// Not here: the refusal on the side of the peer, with a better message for honest code (session.ts).

import { CodedError } from '../../errors.js';
import {
  listAt,
  numberAt,
  type Payload,
  parsePayload,
  propertyFlags,
  special,
} from '../protocol.js';
import type { Importer } from '../types.js';
import { errorNames } from '../values/error-names.js';
import { asCorrupt, corrupt, format, read } from '../wire.js';
import { decode } from './decode.js';
import type { Memory } from './peer-memory.js';
import { scan } from './scan.js';

/** Makes the receiving half for a peer that may send data alone. */
export function createDataImporter(): Importer {
  return { define: refuseCode, forget() {}, importFunction: refuseCode, importValue };
}

/**
 * Throws what the receiver of `bytes` would throw, before they are sent. `graph`: the lists of the payload that they
 * hold, so that nothing is read back; `undefined`: they hold a plain value.
 */
export function checkOwnData(bytes: Uint8Array, graph: Lists | undefined): void {
  scan(bytes);
  if (graph === undefined) return;
  checkSpecials(graph);
  checkLists(graph, bytes.byteLength);
}

function importValue(bytes: Uint8Array): unknown {
  try {
    const { plain, payload } = readData(bytes);
    return payload === undefined ? plain : decode(payload, nothingKept).root;
  } catch (error) {
    throw asCorrupt(error);
  }
}

/** Returns a value as V8 writes it, or a payload that holds data alone. */
function readData(bytes: Uint8Array): { plain?: unknown; payload?: Payload } {
  scan(bytes);
  const { format: as, value } = read(bytes, undefined);
  if (as === format.plain) return { plain: value };
  if (as !== format.graph) throw corrupt('a value was expected');
  const payload = parsePayload(value, bytes.byteLength);
  checkSpecials(payload);
  checkLists(payload, payload.maxElements);
  return { payload };
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

type Lists = Pick<Payload, 'specials' | 'stores' | 'properties' | 'prototypes' | 'fills'>;

function checkSpecials({ specials, stores }: Pick<Lists, 'specials' | 'stores'>): void {
  if (stores.length > 0) refuseCode();
  for (const [kind, name] of specials) {
    if (!dataKinds.has(kind)) refuseCode();
    // Any other global would be called as a constructor.
    if (kind === special.error && !errorNames.has(String(name))) refuseCode();
  }
}

/** Fix-ups of functions and classes. */
const ofCode =
  propertyFlags.absent | propertyFlags.restored | propertyFlags.above | propertyFlags.order;

/** Each list is read once: a list that stands in many places would cost more than its bytes allow. */
function checkLists({ properties, prototypes, fills }: Lists, maxElements: number): void {
  let more = maxElements;
  const count = (list: readonly unknown[]): void => {
    more -= list.length;
    if (more < 0) throw corrupt('its lists are longer than its bytes');
  };
  for (let at = 0; at < properties.length; at += 5) {
    if ((numberAt(properties, at + 2) & ofCode) !== 0) refuseCode();
    count(listAt(properties, at + 3));
  }
  for (let at = 1; at < prototypes.length; at += 2) count(listAt(prototypes, at));
  for (let at = 1; at < fills.length; at += 2) count(listAt(fills, at));
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
