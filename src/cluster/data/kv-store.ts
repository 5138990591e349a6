// Entries in a bucket of NATS KV. With a secret each value has a signature for its bucket and key at its end; one
// without a valid signature is refused. Not here: retries and deadlines (kv-link.ts).

import { hostname } from 'node:os';
import { hasCode } from '../../errors.js';
import {
  abortError,
  beforeDeadline,
  clearInterval,
  clearTimeout,
  setInterval,
  startTimer,
  unwatchAbort,
  watchAbort,
} from '../../lib/index.js';
import {
  absent,
  type Store,
  type StoredChange,
  type StoredEntry,
  type StoreName,
  timedOut,
  tooLarge,
} from '../../shared-data/index.js';
import { verified } from '../bus/signature.js';
import { refused } from '../errors.js';
import { guarded } from '../nats/listen.js';
import { signatureBytes } from '../protocol.js';
import { type Bucket, bucketName, decodeKey, encodeKey, type KvEntry } from './kv.js';
import { isConflict, type KvCall, type KvLink } from './kv-link.js';
import { maxUnreadBytes, ReadAhead } from './read-ahead.js';

/** Room for the headers of a message beside its value, in bytes. */
const headerBytes = 256;
/** Period in which a watch checks that its bucket is the same, in ms. */
const checkBucketMs = 5000;

export interface KvStoreOptions {
  /** Resolves when the cluster is joined. */
  readonly link: Promise<KvLink>;
  /** Name of the cluster. */
  readonly cluster: string;
  readonly hasSecret: boolean;
  readonly name: StoreName;
  readonly timeoutMs: number;
}

export class KvStore implements Store {
  readonly allowsCode: boolean;
  readonly timeoutMs: number;
  /** For people who read the bucket. */
  readonly owner = `${hostname()} ${process.pid}`;
  readonly #link: Promise<KvLink>;
  readonly #bucket: string;

  constructor({ link, cluster, hasSecret, name, timeoutMs }: KvStoreOptions) {
    this.#link = link;
    this.#bucket = bucketName(cluster, name);
    this.allowsCode = hasSecret;
    this.timeoutMs = timeoutMs;
  }

  async get(key: string): Promise<StoredEntry | undefined> {
    const found = await this.#read(key);
    if (found === null || found.operation !== 'PUT') return undefined;
    const bytes = this.#verified(await this.#link, key, found.value);
    return { key, revision: found.revision, bytes };
  }

  #read(key: string): Promise<KvEntry | null> {
    return this.#call(key, 'a read of', (bucket) => bucket.get(encodeKey(key)));
  }

  async put(key: string, bytes: Uint8Array): Promise<number> {
    return await this.#write(key, bytes, {});
  }

  async #write(key: string, bytes: Uint8Array, expected: { readonly previousSeq?: number }) {
    const link = await this.#linked(`a write of "${key}"`);
    const signed = this.#signed(link, key, bytes);
    return await this.#call(key, 'a write of', (bucket, timeout) =>
      bucket.put(encodeKey(key), signed, { ...expected, timeout }),
    );
  }

  async putIf(key: string, bytes: Uint8Array, revision: number): Promise<number | undefined> {
    const put = (previousSeq: number): Promise<number | undefined> =>
      this.#write(key, bytes, { previousSeq }).catch(undefinedIfConflict);
    const stored = await put(revision);
    if (stored !== undefined || revision !== absent) return stored;
    const mark = await this.#read(key); // a mark of a deleted entry has a revision, too
    return mark === null || mark.operation === 'PUT' ? undefined : await put(mark.revision);
  }

  async deleteIf(key: string, revision: number): Promise<boolean> {
    const deleted = this.#call(key, 'a deletion of', async (bucket): Promise<true> => {
      await bucket.delete(encodeKey(key), { previousSeq: revision });
      return true;
    });
    return (await deleted.catch(undefinedIfConflict)) ?? false;
  }

  async *list(): AsyncGenerator<StoredEntry, void> {
    const link = await this.#linked('a list');
    for await (const entry of this.#entries(link, { isList: true })) {
      const stored = this.#accepted(link, entry);
      if (stored?.bytes !== undefined) yield { ...stored, bytes: stored.bytes };
    }
  }

  async *watch(
    key: string | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<StoredChange, void> {
    const link = await this.#linked('a watch');
    for await (const entry of this.#entries(link, { key, isList: false, signal })) {
      const stored = this.#accepted(link, entry);
      if (stored !== undefined) yield { ...stored, isInitial: entry.isInitial };
    }
  }

  /** Reads entries in the order of their revisions, over all reconnections. */
  async *#entries(link: KvLink, reading: ReadingOptions): AsyncGenerator<ReadEntry, void> {
    const { isList, signal } = reading;
    let last = absent;
    let initialSeq = absent;
    let created = '';
    let stop = (): void => {};
    let checking: NodeJS.Timeout | undefined;
    let stops = 0;
    const onStop = (): void => {
      stops += 1;
      stop();
    };
    if (signal !== undefined) watchAbort(signal, onStop);
    const unwatch = link.watchReconnects(onStop);
    try {
      for (;;) {
        if (signal?.aborted) throw abortError(signal);
        const stopsBefore = stops;
        const opened = await this.#openWatch(link, reading, { last, created });
        if (opened === undefined) continue;
        const { watch, info } = opened;
        if (stops > stopsBefore) {
          watch.stop(); // it may be of the connection that was lost meanwhile
          continue;
        }
        // A list that began anew would miss entries that were replaced meanwhile.
        const ahead = new ReadAhead(watch, isList ? Infinity : maxUnreadBytes);
        stop = () => ahead.stop();
        if (created !== info.created) initialSeq = info.state.last_seq;
        created = info.created;
        if (isList && info.state.messages === 0) return;
        clearInterval(checking);
        if (!isList) checking = this.#checkBucket(link, created, stop);
        const late = new Late(isList ? this.timeoutMs : Infinity, stop);
        for await (const entry of ahead) {
          late.end();
          last = entry.revision;
          yield { entry, isInitial: entry.revision <= initialSeq };
          if (isList && (entry.revision >= initialSeq || entry.delta === 0)) return;
          late.begin();
        }
        late.end();
        if (late.isOver) throw timedOut(this.#what('a list'), this.timeoutMs, 'raise timeoutMs');
        // The connection was lost, the bucket deleted, or the reader too slow.
      }
    } finally {
      stop();
      clearInterval(checking);
      unwatch();
      if (signal !== undefined) unwatchAbort(signal, onStop);
    }
  }

  /** Returns `undefined` when a watch that has begun has to try again. */
  async #openWatch(
    link: KvLink,
    { key, isList, signal }: ReadingOptions,
    { last, created }: Place,
  ) {
    let attempts = 0; // what an earlier one opens has no reader
    const open = async (bucket: Bucket) => {
      attempts += 1;
      const attempt = attempts;
      const info = (await bucket.status()).streamInfo;
      const isResumed = last !== absent && info.created === created; // else it is another bucket
      const watch = await bucket.watch({
        ...(key !== undefined && { key: encodeKey(key) }),
        ...(isResumed && { resumeFromRevision: last + 1 }),
      });
      if (attempt !== attempts) watch.stop();
      return { watch, info };
    };
    const what = this.#what(isList ? 'a list' : 'a watch');
    const { timeoutMs } = this;
    const call = link.call({
      bucket: this.#bucket,
      what,
      timeoutMs,
      isWrite: false,
      work: open,
    });
    const onDeadline = (): Error => timedOut(what, timeoutMs, 'the NATS server is away or slow');
    try {
      return await beforeDeadline(call, { deadlineMs: Infinity, onDeadline, signal });
    } catch (error) {
      attempts += 1;
      if (created === '' || isList || !hasCode(error, 'SHARED_DATA_TIMED_OUT')) throw error;
      return undefined;
    }
  }

  /** Calls `onOther` when the bucket was deleted: the client does not report it. */
  #checkBucket(link: KvLink, created: string, onOther: () => void): NodeJS.Timeout {
    const check = async (): Promise<void> => {
      const { streamInfo } = await link.call({
        bucket: this.#bucket,
        what: this.#what('a watch'),
        timeoutMs: checkBucketMs,
        isWrite: false,
        work: (bucket) => bucket.status(),
      });
      if (streamInfo.created !== created) onOther();
    };
    const checking = (): void => void check().catch(() => {}); // the next check may succeed
    return setInterval(checking, checkBucketMs).unref();
  }

  /** Returns the entry with its key and value; refused ones are announced, and `undefined` is returned. */
  #accepted(link: KvLink, { entry }: ReadEntry) {
    let result: Omit<StoredChange, 'isInitial'> | undefined;
    guarded(() => {
      const { revision, operation, value } = entry;
      const key = decodeKey(entry.key);
      const bytes = operation === 'PUT' ? this.#verified(link, key, value) : undefined;
      result = { key, revision, bytes };
    });
    return result;
  }

  async #linked(what: string): Promise<KvLink> {
    const { timeoutMs } = this;
    const onDeadline = (): Error =>
      timedOut(this.#what(what), timeoutMs, 'no NATS server was reached since the start');
    return await beforeDeadline(this.#link, { deadlineMs: timeoutMs, onDeadline });
  }

  #what(what: string): string {
    return `${what} in the bucket ${this.#bucket}`;
  }

  async #call<Result>(key: string, access: Access, work: KvCall<Result>['work']): Promise<Result> {
    const link = await this.#linked(`${access} "${key}"`);
    return await link.call({
      bucket: this.#bucket,
      what: this.#what(`${access} "${key}"`),
      timeoutMs: this.timeoutMs,
      isWrite: access !== 'a read of',
      work,
    });
  }

  /** Signatures are valid for one key of one bucket. */
  #target(key: string): string {
    return `${this.#bucket}\0${key}`;
  }

  /** Throws `SHARED_DATA_TOO_LARGE`. */
  #signed({ signer, maxPayload = Infinity }: KvLink, key: string, bytes: Uint8Array): Buffer {
    const tail = Buffer.alloc(signer === undefined ? 0 : signatureBytes);
    const signed = Buffer.concat([bytes, tail]);
    if (signed.byteLength + headerBytes > maxPayload) {
      const wayOut = `the NATS server takes ${maxPayload}: divide it, or raise max_payload`;
      throw tooLarge(`the value of "${key}"`, signed.byteLength, wayOut);
    }
    signer?.sign(signed, this.#target(key));
    return signed;
  }

  /** Throws `CLUSTER_REFUSED`. */
  #verified({ signer }: KvLink, key: string, signed: Uint8Array): Uint8Array {
    try {
      return verified(signer, signed, this.#target(key));
    } catch (cause) {
      const what = `the value of "${key}" in the bucket ${this.#bucket}`;
      const why = 'is not signed with the secret of this cluster: delete it, or find who wrote it';
      throw refused(`${what} ${why}`, cause);
    }
  }
}

type Access = 'a read of' | 'a write of' | 'a deletion of';

interface ReadingOptions {
  /** `undefined`: all keys. */
  readonly key?: string | undefined;
  /** True: ends with the last entry that is there. */
  readonly isList: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Progress of a watch. */
interface Place {
  /** Revision of the last entry. */
  readonly last: number;
  /** Creation of its bucket; empty before the first one. */
  readonly created: string;
}

interface ReadEntry {
  readonly entry: KvEntry;
  readonly isInitial: boolean;
}

/** The time limit of one wait for an entry. */
class Late {
  isOver = false;
  readonly #ms: number;
  readonly #stop: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number, stop: () => void) {
    this.#ms = ms;
    this.#stop = stop;
    this.begin();
  }

  begin(): void {
    this.#timer = startTimer(this.#ms, () => {
      this.isOver = true;
      this.#stop();
    });
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

function undefinedIfConflict(error: unknown): undefined {
  if (!isConflict(error)) throw error;
}
