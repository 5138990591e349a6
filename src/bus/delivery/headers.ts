// Headers of messages. A header has one text or several, as in Node's http: a sender gives a text or a list of
// texts, a receiver reads one text (`headers`) or the list (`headersDistinct`). A message carries what the
// sender gave, so a header with one text costs nothing more.

import { CodedError } from '../../errors.js';
import { invalid } from '../../lib/index.js';

/** Headers as a receiver reads them: several values of one name are joined by `, `. Names are case-sensitive. */
export type BusHeaders = Readonly<Record<string, string>>;

/** Headers as a sender gives them, as in Node's http: one text, or a list of one or more. */
export type OutgoingBusHeaders = Readonly<Record<string, string | readonly string[]>>;

/** All values of each header, in the order of the sender. */
export type DistinctBusHeaders = Readonly<Record<string, readonly string[]>>;

/** The headers of messages without headers. */
export const noHeaders: BusHeaders = Object.freeze({});

/** Names the codec of a body (codecs.ts). */
export const codecHeader = 'manycore-codec';

const isText = (value: unknown): value is string => typeof value === 'string';

/** Returns whether `value` is what a header may be: a text, or a list of one or more texts without gaps. */
export function isHeader(value: unknown): value is string | readonly string[] {
  if (!Array.isArray(value)) return isText(value);
  return value.length > 0 && [...value].every(isText);
}

/** Returns a checked and frozen copy. Throws `OPTION_INVALID`, also for a `Map` or `Headers` of entries. */
export function headersOf(given: OutgoingBusHeaders | undefined): OutgoingBusHeaders {
  if (given === undefined) return noHeaders;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid('headers', given, 'an object of texts');
  }
  checkPlain(given);
  const copy: Record<string, string | readonly string[]> = { ...given };
  for (const [name, value] of Object.entries(copy)) {
    if (!isHeader(value)) {
      throw invalid(`headers.${name}`, value, 'a text, or a list of one or more texts');
    }
    if (name === codecHeader) throw invalid('headers', name, 'names other than this reserved one');
    if (!isText(value)) setOwn(copy, name, Object.freeze([...value]));
  }
  return Object.freeze(copy);
}

/** Sets a property that exists: an assignment would call the setter of `__proto__`. */
function setOwn(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value });
}

/** Refuses objects whose entries are no properties: their copy would be empty. */
function checkPlain(given: object): void {
  const prototype: unknown = Object.getPrototypeOf(given);
  // The prototype of plain objects, in any realm, has none itself.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return;
  const itsClass: unknown = Reflect.get(Object(prototype), 'constructor');
  const kind = typeof itsClass === 'function' ? itsClass.name : 'object with a prototype';
  const wayOut = Symbol.iterator in given ? ': Object.fromEntries(headers) makes one' : '';
  throw new CodedError(
    'OPTION_INVALID',
    `headers is a ${kind}: it must be a plain object of texts${wayOut}`,
  );
}

function hasTextsOnly(headers: OutgoingBusHeaders): headers is BusHeaders {
  return Object.values(headers).every(isText);
}

/** Returns each header as one text; several values are joined by `, `. */
export function joinedHeaders(headers: OutgoingBusHeaders): BusHeaders {
  if (headers === noHeaders) return noHeaders;
  if (hasTextsOnly(headers)) return headers;
  const entries = Object.entries(headers).map(([name, value]) => {
    return [name, isText(value) ? value : value.join(', ')] as const;
  });
  return Object.freeze(Object.fromEntries(entries));
}

/** Returns each header as a list of its values, in a new object. */
export function distinctHeaders(headers: OutgoingBusHeaders): DistinctBusHeaders {
  const entries = Object.entries(headers).map(([name, value]) => {
    return [name, isText(value) ? [value] : [...value]] as const;
  });
  return Object.fromEntries(entries);
}

/**
 * Returns `changed`, which a filter made of the joined `before`: a header whose text it left alone keeps its
 * values.
 */
export function withValuesKept(
  changed: OutgoingBusHeaders,
  before: OutgoingBusHeaders,
): OutgoingBusHeaders {
  const kept = Object.entries(before).filter(([name, value]) => {
    return !isText(value) && Object.hasOwn(changed, name) && changed[name] === value.join(', ');
  });
  return kept.length === 0 ? changed : Object.freeze({ ...changed, ...Object.fromEntries(kept) });
}
