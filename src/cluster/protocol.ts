// Messages between the loops of a cluster over NATS: frames, and announcements of nodes. All of it is input
// from a network, and every field is checked before use.
//
// A frame, numbers little-endian:
//
//   'MC' | version u8 | kind u8 | sender: node 12 bytes, member u32 | number f64 | time f64 (ms)
//   | definitions u32, each: id i32, size u32, bytes | value | signature 32 bytes, with a secret only
//
// Numbers of one sender grow; times are those of its clock. Not here: the signature (signature.ts), the
// encoding of values (values.ts).

import { type ByteReader, ByteWriter } from '../channels/index.js';
import { CodedError } from '../errors.js';
import type { ClusterTicket } from './cluster.js';
import type { KvClient } from './data/kv.js';
import type { NatsClient } from './nats/nats.js';
import type { JetStreamClient } from './tasks/jetstream.js';

/** Raised with every incompatible change of frames or of the encoding by the context layer; equal in a whole cluster. */
export const protocolVersion = 2;

export const clusterFrame = Object.freeze({
  /** Value: the body. */
  message: 1,
  /** Value: `[body, headers]`. */
  messageWithHeaders: 2,
  /** Answers, with the same values. */
  reply: 3,
  replyWithHeaders: 4,
  /** Value: a `FailureBody` of the bus. */
  failure: 5,
  /** A probe for liveness, and its answer; both without a value. */
  probe: 6,
  present: 7,
  /** Answer to a request that was refused for its time; no value, since the time of its head says it. */
  otherClock: 8,
});

export interface FrameHead {
  readonly kind: number;
  /** Id of the sending loop, unique in the whole cluster. */
  readonly sender: string;
  /** Number of the frame among those of its sender. */
  readonly number: number;
  /** Time of sending by the sender's clock, in ms. */
  readonly time: number;
}

export interface FrameDefinition {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** Size of the signature at the end of a frame. */
export const signatureBytes = 32;

const magic = 0x434d; // 'MC'
const senderBytes = 16;
const maxDefinitions = 100_000;

export function corrupt(what: string): CodedError {
  return new CodedError('TRANSFER_CORRUPT', `bytes from the cluster are no frame: ${what}`);
}

/** Writes a frame with `tailBytes` free at its end; `stampFrame` sets number and time later. */
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

/** Sets number and time, just before the frame is signed and sent. */
export function stampFrame(frame: Buffer, number: number, time: number): void {
  frame.writeDoubleLE(number, numberAt);
  frame.writeDoubleLE(time, numberAt + 8);
}

/**
 * Leaves `reader` at the definitions, which the value follows. Throws `TRANSFER_CORRUPT`,
 * `CHANNEL_FRAME_CORRUPT`.
 */
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

/** Leaves `reader` at the value. Throws as `readHead`. */
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

/** Announcement of a node, in JSON, so that every version can read it. */
export interface NodeMessage {
  /** `joined` and `alive` go to all, `present` to a node that has joined. */
  readonly type: 'joined' | 'alive' | 'present' | 'left';
  readonly node: string;
  readonly host: string;
  readonly pid: number;
  /** Version of the package, for people. */
  readonly version: string;
  readonly protocol: number;
  /** Start time by the clock of the node's machine, in ms. */
  readonly startedAt: number;
  /** Time of sending, by the same clock. */
  readonly time: number;
  /** True: the node has a secret, and a signature follows. */
  readonly isSigned: boolean;
}

const nodeTypes: readonly unknown[] = ['joined', 'alive', 'present', 'left'];
const texts = ['node', 'host', 'version'] as const;
const numbers = ['pid', 'protocol', 'startedAt', 'time'] as const;

export function writeNode(message: NodeMessage): Buffer {
  return Buffer.from(JSON.stringify(message));
}

/**
 * Parses an announcement with or without a signature, which is not verified here. Throws
 * `TRANSFER_CORRUPT`.
 */
export function parseNode(bytes: Uint8Array): NodeMessage {
  const value = jsonOf(bytes) ?? jsonOf(bytes.subarray(0, -signatureBytes));
  if (isNode(value)) return value;
  throw corrupt('an announcement of a node');
}

/** Returns `undefined` for bytes that are no JSON. */
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

const clientFunctions = ['connect', 'createInbox', 'credsAuthenticator', 'nkeyAuthenticator'];

/** Checks the loaded NATS client. Throws `CLUSTER_CLIENT_MISSING` for a version without these functions. */
export function parseNatsClient(client: unknown): NatsClient {
  const missing = clientFunctions.find(
    (name) => typeof Reflect.get(Object(client), name) !== 'function',
  );
  if (missing === undefined) return client as NatsClient;
  const message = `the client of NATS that is installed has no ${missing}: install one from 3.0 on`;
  throw new CodedError('CLUSTER_CLIENT_MISSING', message);
}

/** Checks the loaded JetStream client. Throws `CLUSTER_CLIENT_MISSING` for one without these functions. */
export function parseJetStreamClient(client: unknown): JetStreamClient {
  const functions = ['jetstream', 'jetstreamManager'];
  const missing = functions.find((name) => typeof Reflect.get(Object(client), name) !== 'function');
  if (missing === undefined) return client as JetStreamClient;
  const message = `the client of JetStream that is installed has no ${missing}: install one from 3.0 on`;
  throw new CodedError('CLUSTER_CLIENT_MISSING', message);
}

/** Checks the loaded client of KV. Throws `CLUSTER_CLIENT_MISSING` for one without its class. */
export function parseKvClient(client: unknown): KvClient {
  if (typeof Reflect.get(Object(client), 'Kvm') === 'function') return client as KvClient;
  const message = 'the client of NATS KV that is installed has no Kvm: install one from 3.0 on';
  throw new CodedError('CLUSTER_CLIENT_MISSING', message);
}

/** Parses the director's answer to a loop; the program has checked its content. Throws `TRANSFER_CORRUPT`. */
export function parseTicket(value: unknown): ClusterTicket {
  if (typeof value === 'object' && value !== null && 'options' in value && 'node' in value) {
    return value as ClusterTicket;
  }
  throw corrupt('the cluster ticket of a loop');
}

/** Frames between the ends of a tunnel: kind u8 | offset f64 | bytes | signature. */
export const tunnelFrame = Object.freeze({
  /** Bytes of the stream, from `offset` on. */
  data: 1,
  /** All bytes before `offset` have arrived. */
  ack: 2,
  /** A probe for liveness; all bytes before `offset` were sent. */
  probe: 3,
  /** Bytes from `offset` on are missing: sent again. */
  missing: 4,
  /** A control message, in JSON, beside the stream. */
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

/** Writes a frame with room for its signature. */
export function writeTunnelFrame({ kind, offset, bytes }: TunnelFrame): Buffer {
  const frame = Buffer.allocUnsafeSlow(tunnelHeadBytes + bytes.byteLength + signatureBytes);
  frame[0] = kind;
  frame.writeDoubleLE(offset, 1);
  frame.set(bytes, tunnelHeadBytes);
  return frame;
}

/** Reads a frame whose signature was verified. Throws `TRANSFER_CORRUPT`. */
export function readTunnelFrame(frame: Buffer): TunnelFrame {
  const kind = frame[0];
  if (kind === undefined || frame.byteLength < tunnelHeadBytes) throw corrupt('it is too short');
  return { kind, offset: frame.readDoubleLE(1), bytes: frame.subarray(tunnelHeadBytes) };
}

/** Request of a pool to nodes with workers. */
export interface WorkerRequest {
  /** Id of the tunnel for the answer, unique to the request. */
  readonly tunnel: string;
  /** Time by the clock of the pool, in ms. */
  readonly time: number;
  readonly workerId: number;
  readonly concurrentTasks: number;
  readonly maxRssBytes: number;
  readonly maxHeapMb: number;
  readonly execArgv: readonly string[];
  /** `undefined` removes a variable. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Control messages from the worker's end of a tunnel, and from the pool's. */
export type WorkerMessage =
  | {
      readonly type: 'granted';
      readonly subject: string;
      readonly pid: number;
      readonly host: string;
    }
  /** All free workers were granted to others. */
  | { readonly type: 'busy' }
  /** `now`: set where the time of the request is the reason; the clock of the node, in ms. */
  | { readonly type: 'failed'; readonly why: string; readonly now?: number }
  /** The worker gets no more tasks, and ends after those that it has. */
  | { readonly type: 'retire' }
  | { readonly type: 'exit'; readonly exitCode: number | null; readonly signal: string | null };
export type PoolMessage =
  | { readonly type: 'terminate' }
  | { readonly type: 'kill' }
  /** Returns a worker that was granted in addition. */
  | { readonly type: 'refuse' };

function hasType(value: unknown, types: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && types.includes(Reflect.get(value, 'type'));
}

/** Checks the type only: control messages are signed, so their sender is trusted. */
export function parseWorkerMessage(value: unknown): WorkerMessage | undefined {
  return hasType(value, ['granted', 'busy', 'failed', 'retire', 'exit'])
    ? (value as WorkerMessage)
    : undefined;
}

export function parsePoolMessage(value: unknown): PoolMessage | undefined {
  return hasType(value, ['terminate', 'kill', 'refuse']) ? (value as PoolMessage) : undefined;
}

/** Writes a request with room for its signature. */
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
  throw corrupt('a request for a worker');
}

function mapValues<From, To>(
  object: Readonly<Record<string, From>>,
  change: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
