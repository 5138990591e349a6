// What the loops of a cluster send each other over NATS: frames, and what nodes say of themselves. All of it
// is input from a network, and nothing is believed that was not looked at.
//
// A frame, numbers little-endian:
//   'MC' | version u8 | kind u8 | sender: node 12 bytes, member u32 | number f64 | time f64 (ms)
//   | definitions u32, each: id i32, size u32, bytes | value | signature 32 bytes, where the cluster has a secret
// Numbers of one sender grow, times are those of its clock. Not here: what signs a frame (signature.ts), how
// values are written (values.ts).

import { type ByteReader, ByteWriter } from '../channels/index.js';
import { CodedError } from '../errors.js';
import type { ClusterTicket } from './cluster.js';
import type { JetStreamClient } from './jetstream.js';
import type { NatsClient } from './nats.js';

/** Raised with every change to frames, or to what the context layer writes: one in a whole cluster. */
export const protocolVersion = 1;

export const clusterFrame = Object.freeze({
  /** Value: the body. */
  message: 1,
  /** Value: `[body, headers]`. */
  messageWithHeaders: 2,
  /** The same as answers. */
  reply: 3,
  replyWithHeaders: 4,
  /** Value: a `FailureBody` of the bus. */
  failure: 5,
  /** Is anybody there? Somebody is. Both without a value. */
  probe: 6,
  present: 7,
});

export interface FrameHead {
  readonly kind: number;
  /** Of the loop that sent it, in no other use in the whole cluster. */
  readonly sender: string;
  /** Of the frame, among those of its sender. */
  readonly number: number;
  /** When it was sent, by the sender's clock, in ms. */
  readonly time: number;
}

export interface FrameDefinition {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** Of a signature at the end of a frame. */
export const signatureBytes = 32;

const magic = 0x434d; // 'MC'
const senderBytes = 16;
const maxDefinitions = 100_000;

export function corrupt(what: string): CodedError {
  return new CodedError('TRANSFER_CORRUPT', `what came from the cluster is no frame: ${what}`);
}

/** With `tailBytes` left free at its end, and number and time to be stamped. */
export function writeFrame(
  head: FrameHead,
  definitions: readonly FrameDefinition[],
  value: Uint8Array,
  tailBytes: number,
): Buffer {
  const contentBytes = definitionsBytes(definitions) + value.byteLength;
  const sizeBytes = 4 + senderBytes + 16 + contentBytes + tailBytes;
  const writer = new ByteWriter(Buffer.allocUnsafeSlow(sizeBytes), false);
  writer.u8(magic & 0xff);
  writer.u8(magic >> 8);
  writer.u8(protocolVersion);
  writer.u8(head.kind);
  writer.raw(Buffer.from(head.sender, 'hex'));
  writer.f64(head.number);
  writer.f64(head.time);
  writeDefinitions(writer, definitions);
  writer.raw(value);
  return writer.bytes;
}

export function definitionsBytes(definitions: readonly FrameDefinition[]): number {
  return definitions.reduce((sum, { bytes }) => sum + 8 + bytes.byteLength, 4);
}

export function writeDefinitions(
  writer: ByteWriter,
  definitions: readonly FrameDefinition[],
): void {
  writer.u32(definitions.length);
  for (const { id, bytes } of definitions) {
    writer.i32(id);
    writer.u32(bytes.byteLength);
    writer.raw(bytes);
  }
}

const numberAt = 4 + senderBytes;

/** Just before it is signed and goes out. */
export function stampFrame(frame: Buffer, number: number, time: number): void {
  frame.writeDoubleLE(number, numberAt);
  frame.writeDoubleLE(time, numberAt + 8);
}

/** The rest of `reader` is definitions and the value. Throws `TRANSFER_CORRUPT`, `CHANNEL_FRAME_CORRUPT`. */
export function readHead(reader: ByteReader): FrameHead {
  if (reader.u8() !== (magic & 0xff) || reader.u8() !== magic >> 8)
    throw corrupt('its first bytes');
  const version = reader.u8();
  if (version !== protocolVersion) {
    throw corrupt(`its version is ${version}, ours ${protocolVersion}`);
  }
  const kind = reader.u8();
  const sender = reader.copy(senderBytes).toString('hex');
  return { kind, sender, number: reader.f64(), time: reader.f64() };
}

/** What is left of `reader` is the value. Throws as `readHead`. */
export function readDefinitions(reader: ByteReader): FrameDefinition[] {
  const count = reader.u32();
  if (count > maxDefinitions) throw corrupt(`${count} definitions`);
  const definitions: FrameDefinition[] = [];
  for (let at = 0; at < count; at += 1) {
    const id = reader.i32();
    definitions.push({ id, bytes: reader.copy(reader.u32()) });
  }
  return definitions;
}

/** What a node says of itself, in JSON, so that every version can read it. */
export interface NodeMessage {
  /** `joined` and `alive` to all, `welcome` to one that has joined. */
  readonly type: 'joined' | 'alive' | 'welcome' | 'left';
  readonly node: string;
  readonly host: string;
  readonly pid: number;
  /** Of the package, for people. */
  readonly version: string;
  readonly protocol: number;
  /** By the clock of its machine, in ms. */
  readonly startedAt: number;
  /** When it was said, by the same clock. */
  readonly time: number;
  /** It has a secret: a signature follows. */
  readonly isSigned: boolean;
}

const nodeTypes: readonly unknown[] = ['joined', 'alive', 'welcome', 'left'];
const texts = ['node', 'host', 'version'] as const;
const numbers = ['pid', 'protocol', 'startedAt', 'time'] as const;

export function writeNode(message: NodeMessage): Buffer {
  return Buffer.from(JSON.stringify(message));
}

/** With or without a signature behind it, which is not looked at. Throws `TRANSFER_CORRUPT`. */
export function parseNode(bytes: Uint8Array): NodeMessage {
  const value = jsonOf(bytes) ?? jsonOf(bytes.subarray(0, -signatureBytes));
  if (isNode(value)) return value;
  throw corrupt('what a node says');
}

/** `undefined` for what is none. */
export function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return undefined;
  }
}

function isNode(value: unknown): value is NodeMessage {
  if (typeof value !== 'object' || value === null) return false;
  const field = (name: string): unknown => Reflect.get(value, name);
  return (
    nodeTypes.includes(field('type')) &&
    texts.every((name) => typeof field(name) === 'string') &&
    numbers.every((name) => Number.isFinite(field(name))) &&
    typeof field('isSigned') === 'boolean' &&
    /^[0-9a-f]{24}$/.test(String(field('node')))
  );
}

const clientFunctions = ['connect', 'createInbox', 'credsAuthenticator'];

/** The client of NATS, as it was loaded. Throws `CLUSTER_CLIENT_MISSING` for a version without these. */
export function parseNatsClient(client: unknown): NatsClient {
  const missing = clientFunctions.find(
    (name) => typeof Reflect.get(Object(client), name) !== 'function',
  );
  if (missing === undefined) return client as NatsClient;
  const message = `the client of NATS that is installed has no ${missing}: install one from 3.0 on`;
  throw new CodedError('CLUSTER_CLIENT_MISSING', message);
}

/** The client of JetStream, as it was loaded. Throws `CLUSTER_CLIENT_MISSING` for one without these. */
export function parseJetStreamClient(client: unknown): JetStreamClient {
  const functions = ['jetstream', 'jetstreamManager'];
  const missing = functions.find((name) => typeof Reflect.get(Object(client), name) !== 'function');
  if (missing === undefined) return client as JetStreamClient;
  const message = `the client of JetStream that is installed has no ${missing}: install one from 3.0 on`;
  throw new CodedError('CLUSTER_CLIENT_MISSING', message);
}

/** What the director answers a loop: the program checked it. Throws `TRANSFER_CORRUPT`. */
export function parseTicket(value: unknown): ClusterTicket {
  if (typeof value === 'object' && value !== null && 'options' in value && 'node' in value) {
    return value as ClusterTicket;
  }
  throw corrupt('what a loop was told of its cluster');
}

/** Between the ends of a tunnel: kind u8 | offset f64 | bytes | signature. */
export const tunnelFrame = Object.freeze({
  /** Bytes of the stream, from `offset` on. */
  data: 1,
  /** All before `offset` has come. */
  ack: 2,
  /** Is anybody there? All before `offset` was sent. */
  probe: 3,
  /** What was sent from `offset` on has not come. */
  missing: 4,
  /** Bytes: JSON, beside the stream. */
  control: 5,
  /** The stream ends at `offset`. */
  end: 6,
});

export interface TunnelFrame {
  readonly kind: number;
  readonly offset: number;
  readonly bytes: Buffer;
}

const tunnelHeadBytes = 9;

/** With room for its signature. */
export function writeTunnelFrame({ kind, offset, bytes }: TunnelFrame): Buffer {
  const frame = Buffer.allocUnsafeSlow(tunnelHeadBytes + bytes.byteLength + signatureBytes);
  frame[0] = kind;
  frame.writeDoubleLE(offset, 1);
  frame.set(bytes, tunnelHeadBytes);
  return frame;
}

/** Of what was verified. Throws `TRANSFER_CORRUPT`. */
export function readTunnelFrame(frame: Buffer): TunnelFrame {
  const kind = frame[0];
  if (kind === undefined || frame.byteLength < tunnelHeadBytes) throw corrupt('it is too short');
  return { kind, offset: frame.readDoubleLE(1), bytes: frame.subarray(tunnelHeadBytes) };
}

/** What a pool asks of those that have workers. */
export interface WorkerRequest {
  /** Where the pool hears of it; no other request has the same. */
  readonly tunnel: string;
  /** By the clock of the pool, in ms. */
  readonly time: number;
  readonly workerId: number;
  readonly concurrentTasks: number;
  readonly maxRssBytes: number;
  readonly maxHeapMb: number;
  readonly execArgv: readonly string[];
  /** `undefined` takes a variable away. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What the ends of a tunnel tell each other beside the stream. */
export type WorkerMessage =
  | {
      readonly type: 'granted';
      readonly subject: string;
      readonly pid: number;
      readonly host: string;
    }
  /** Others have taken all that was free. */
  | { readonly type: 'busy' }
  | { readonly type: 'failed'; readonly why: string }
  /** It is to get nothing more, and to end after what it has. */
  | { readonly type: 'retire' }
  | { readonly type: 'exit'; readonly exitCode: number | null; readonly signal: string | null };
export type PoolMessage =
  | { readonly type: 'terminate' }
  | { readonly type: 'kill' }
  /** Another worker was granted, too: this one is not wanted. */
  | { readonly type: 'refuse' };

function hasType(value: unknown, types: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && types.includes(Reflect.get(value, 'type'));
}

/** What comes is signed, so its sender is one of ours: the type is checked, the rest believed. */
export function parseWorkerMessage(value: unknown): WorkerMessage | undefined {
  return hasType(value, ['granted', 'busy', 'failed', 'retire', 'exit'])
    ? (value as WorkerMessage)
    : undefined;
}

export function parsePoolMessage(value: unknown): PoolMessage | undefined {
  return hasType(value, ['terminate', 'kill', 'refuse']) ? (value as PoolMessage) : undefined;
}

/** With room for its signature. */
export function writeWorkerRequest(request: WorkerRequest): Buffer {
  const env = mapValues(request.env, (value) => value ?? null); // JSON has no undefined
  const text = JSON.stringify({ ...request, env });
  return Buffer.concat([Buffer.from(text), Buffer.alloc(signatureBytes)]);
}

/** Throws `TRANSFER_CORRUPT`. */
export function parseWorkerRequest(bytes: Uint8Array): WorkerRequest {
  const value: unknown = JSON.parse(Buffer.from(bytes).toString());
  const isRequest = typeof value === 'object' && value !== null && 'tunnel' in value;
  if (isRequest && typeof value.tunnel === 'string') {
    const request = value as WorkerRequest;
    return { ...request, env: mapValues(request.env, (each) => each ?? undefined) };
  }
  throw corrupt('what asks for a worker');
}

function mapValues<From, To>(
  object: Readonly<Record<string, From>>,
  change: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
