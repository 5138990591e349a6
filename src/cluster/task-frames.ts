// Durable tasks and their results as bytes. Both lie in JetStream for days, so unlike frames of the bus they
// are whole: they bring every definition, and nothing is kept of who sent them. A node reads the order
// and never the values: those are for its worker. Not here: where they lie (jetstream.ts).

import { ByteReader, ByteWriter } from '../channels/index.js';
import type { TaskTarget } from '../context/index.js';
import {
  corrupt,
  definitionsBytes,
  jsonOf,
  protocolVersion,
  writeDefinitions,
} from './protocol.js';
import type { EncodedValue } from './values.js';

/** What a node must know of a durable task; what is called, and with what, only the worker reads. */
export interface TaskOrder {
  readonly protocol: number;
  /** Of the function, for errors. */
  readonly name: string;
  /** By the clock of who asked for it, in ms. */
  readonly time: number;
  /** Of the run; `null`: no limit. */
  readonly timeoutMs: number | null;
  readonly retry: number;
  /** An export instead of a function that travels. */
  readonly target: TaskTarget | null;
}

/** In JSON behind its size (u32), then the definitions and the value, with room for a signature. */
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

/** `call`: the definitions and the value. Throws `TRANSFER_CORRUPT`, `CHANNEL_FRAME_CORRUPT`. */
export function readTask(frame: Buffer): { readonly order: TaskOrder; readonly call: Buffer } {
  const reader = new ByteReader(frame);
  const order = jsonOf(reader.copy(reader.u32()));
  if (!isOrder(order)) throw corrupt('what is to be done');
  return { order, call: frame.subarray(reader.position) };
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
    (field('target') === null || (typeof url === 'string' && typeof exportName === 'string'))
  );
}

/** How a durable task has ended: has it thrown u8 | definitions | value | signature. */
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
