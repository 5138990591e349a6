// The client of NATS KV, an optional peer dependency as those of NATS and JetStream: loaded at the first use of
// shared data, and how bucket and keys are named (ADR-8 of NATS). Not here: calls on a bucket (kv-link.ts).

import { CodedError } from '../../errors.js';
import { messageOf, prototypeRemedy } from '../../lib/index.js';
import type { StoreName } from '../../shared-data/index.js';
import type { NatsConnection } from '../nats/nats.js';
import { parseKvClient } from '../protocol.js';

// The part of the client that is used here; see nats.ts.

export interface KvEntry {
  readonly key: string;
  readonly value: Uint8Array;
  readonly revision: number;
  readonly operation: 'PUT' | 'DEL' | 'PURGE';
  /** In a watch: number of entries that follow, when the server sent this one. */
  readonly delta?: number;
}

export interface KvWatch extends AsyncIterable<KvEntry> {
  stop(): void;
}

interface KvWatchOptions {
  readonly key?: string;
  readonly resumeFromRevision?: number;
}

export interface BucketInfo {
  /** Time of its creation by the clock of the server, as text. */
  readonly created: string;
  /** `messages`: number of entries, with the marks of deleted ones. `last_seq`: revision of the last change. */
  readonly state: { readonly messages: number; readonly last_seq: number };
}

export interface Bucket {
  get(key: string): Promise<KvEntry | null>;
  /** `previousSeq`: the revision that the key must have; `0`: it was never set. */
  put(
    key: string,
    bytes: Uint8Array,
    options: { readonly timeout: number; readonly previousSeq?: number },
  ): Promise<number>;
  delete(key: string, options: { readonly previousSeq: number }): Promise<void>;
  watch(options: KvWatchOptions): Promise<KvWatch>;
  status(): Promise<{ readonly streamInfo: BucketInfo }>;
}

interface BucketOptions {
  /** False: reads see all earlier changes, because the leader of the stream answers. */
  readonly allow_direct: boolean;
  readonly history: number;
}

export interface KvClient {
  readonly Kvm: new (
    connection: NatsConnection,
  ) => { create(bucket: string, options: BucketOptions): Promise<Bucket> };
}

const clientName: string = '@nats-io/kv';

/** Rejects with `CLUSTER_CLIENT_MISSING`. */
async function loadClient(): Promise<KvClient> {
  let client: unknown;
  try {
    client = await import(clientName);
  } catch (cause) {
    const wayOut = prototypeRemedy(cause) ?? `npm install ${clientName}`;
    const message = `shared data in a cluster need the client of NATS KV (${messageOf(cause)}): ${wayOut}`;
    throw new CodedError('CLUSTER_CLIENT_MISSING', message, { cause });
  }
  return parseKvClient(client);
}

/** Creates the bucket where it does not exist; an existing one stays as it is. */
export async function openBucket(connection: NatsConnection, bucket: string): Promise<Bucket> {
  const { Kvm } = await loadClient();
  return await new Kvm(connection).create(bucket, { allow_direct: false, history: 1 });
}

const plainName = /^\w$/;
const plainKey = /^[\w/-]$/;

function escaped(character: string, mark: string): string {
  let text = '';
  for (const byte of Buffer.from(character)) {
    text += `${mark}${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}

/**
 * Returns the bucket of a store. No two have the same: an escaped name has no hyphen before a small letter.
 */
export function bucketName(cluster: string, name: StoreName): string {
  if (name.kind !== 'map') return `${cluster}-shared-${name.kind}`;
  const map = [...name.map].map((each) => (plainName.test(each) ? each : escaped(each, '-')));
  return `${cluster}-map-${map.join('')}`;
}

/** Returns the key as KV takes it: other characters as `=XX`, byte by byte. Dots inside stay. */
export function encodeKey(key: string): string {
  const characters = [...key];
  const encoded = characters.map((each, at) => {
    const isInside = at > 0 && at < characters.length - 1 && characters[at - 1] !== '.';
    if (each === '.' ? isInside : plainKey.test(each) && (at > 0 || each !== '_')) return each;
    return escaped(each, '=');
  });
  return encoded.join('');
}

/** Throws `URIError` for what `encodeKey` does not make. */
export function decodeKey(encoded: string): string {
  return decodeURIComponent(encoded.replaceAll('=', '%'));
}
