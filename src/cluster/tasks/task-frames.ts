// Durable tasks and their results as bytes. Both stay in JetStream for days, so unlike bus frames they are
// self-contained: they include every definition, and depend on no state of their sender. A node reads the
// order and never the values, which only its worker reads. Not here: storage (jetstream.ts).

import { ByteReader, ByteWriter } from '../../channels/index.js';
import type { ModuleVersion, TaskTarget } from '../../context/index.js';
import type { EncodedValue } from '../bus/values.js';
import {
  corrupt,
  definitionsBytes,
  jsonOf,
  protocolVersion,
  writeDefinitions,
} from '../protocol.js';

/** The part of a durable task that the node reads; function and arguments are for the worker only. */
export interface TaskOrder {
  readonly protocol: number;
  /** Name of the function, for errors. */
  readonly name: string;
  /** Time by the clock of the caller, in ms. */
  readonly time: number;
  /** Time limit of the run; `null`: none. */
  readonly timeoutMs: number | null;
  readonly retry: number;
  /** An export, instead of a function that travels. */
  readonly target: TaskTarget | null;
  /** The modules that it imports, by their names. */
  readonly code: readonly ModuleVersion[];
}

/** Writes the order as JSON behind its size (u32), then definitions and value, with room for a signature. */
export function writeTask(
  order: TaskOrder,
  { bytes, definitions }: EncodedValue,
  tailBytes: number,
): Buffer {
  const head = Buffer.from(JSON.stringify(order));
  const contentBytes = definitionsBytes(definitions) + bytes.byteLength;
  const sizeBytes = 4 + head.byteLength + contentBytes + tailBytes;
  const writer = new ByteWriter(Buffer.allocUnsafeSlow(sizeBytes), false);
  writer.u32(head.byteLength);
  writer.raw(head);
  writeDefinitions(writer, definitions);
  writer.raw(bytes);
  return writer.bytes;
}

/** `call`: definitions and value. Throws `TRANSFER_CORRUPT`, `CHANNEL_FRAME_CORRUPT`. */
export function readTask(frame: Buffer): { readonly order: TaskOrder; readonly call: Buffer } {
  const reader = new ByteReader(frame);
  const order = jsonOf(reader.copy(reader.u32()));
  if (!isOrder(order)) throw corrupt('the order of a durable task');
  return { order, call: frame.subarray(reader.position) };
}

/** Returns the version of the protocol in which a task was written; `undefined` for bytes that are no task. */
export function protocolOf(frame: Buffer): unknown {
  try {
    const reader = new ByteReader(frame);
    return Object(jsonOf(reader.copy(reader.u32())))['protocol'];
  } catch {
    return undefined;
  }
}

function isOrder(value: unknown): value is TaskOrder {
  if (typeof value !== 'object' || value === null) return false;
  const field = (name: string): unknown => Reflect.get(value, name);
  const { url, exportName } = Object(field('target'));
  if (field('protocol') !== protocolVersion) {
    throw corrupt(`its version is ${field('protocol')}, ours ${protocolVersion}`);
  }
  return (
    typeof field('name') === 'string' &&
    Number.isFinite(field('time')) &&
    (field('timeoutMs') === null || Number.isFinite(field('timeoutMs'))) &&
    Number.isSafeInteger(field('retry')) &&
    (field('target') === null || (typeof url === 'string' && typeof exportName === 'string')) &&
    isCode(field('code'))
  );
}

function isCode(value: unknown): value is readonly ModuleVersion[] {
  return (
    Array.isArray(value) &&
    value.every((each: unknown) => {
      const { specifier, parent, version } = Object(each);
      return [specifier, parent, version].every((text) => typeof text === 'string');
    })
  );
}

/** Writes the outcome of a durable task: has it thrown u8 | definitions | value | signature. */
export function writeOutcome(
  hasThrown: boolean,
  { bytes, definitions }: EncodedValue,
  tailBytes: number,
): Buffer {
  const sizeBytes = 1 + definitionsBytes(definitions) + bytes.byteLength + tailBytes;
  const writer = new ByteWriter(Buffer.allocUnsafeSlow(sizeBytes), false);
  writer.u8(hasThrown ? 1 : 0);
  writeDefinitions(writer, definitions);
  writer.raw(bytes);
  return writer.bytes;
}
