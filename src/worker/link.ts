// One end of the connection between a parent and a worker: turns values into frames and back. Both ends use
// it; frames that only one of them sends are in worker.ts and runner.ts.
//
// Two ways to send. `trySend` is for calls: it may be refused for lack of room, and the caller keeps the
// task. `post` is for frames that must arrive (results, definitions, releases): without room they wait in
// an outbox, in order, until the channel drains.
//
// A definition (code, class, import) is sent once to each peer, ahead of the first frame that needs it.
// Long (over 400 lines), because both directions share the outbox, the blocks and the list of sent
// definitions.

import type {
  Block,
  BodyWriter,
  ByteWriter,
  Channel,
  ChannelEnd,
  Packed,
  SendOutcome,
} from '../channels/index.js';
import { ByteReader, Codec } from '../channels/index.js';
import {
  type Exporter,
  type Importer,
  type ValueSnapshot,
  withVersion,
} from '../context/receiving.js';
import { CodedError } from '../errors.js';
import { messageOf, type Parcel } from '../lib/index.js';
import { readBlock, writeBlock } from './both/block-frames.js';
import { blocksOf, encodedOf } from './both/buffers.js';
import { type Call, parcelsOf } from './both/call.js';
import { type HeldFrame, holdFrame } from './both/held-frames.js';
import type { Parcels } from './both/parcels.js';
import { frame } from './protocol.js';

export interface LinkEvents {
  /** Receives all frames except definitions and blocks, which the link handles itself. */
  onFrame(kind: number, task: number, target: number, body: ByteReader): void;
  /** There is room for calls again. */
  onDrain(): void;
  onClose(error: Error | undefined): void;
  /** A definition was sent. */
  onDefine?(): void;
  /** The modules of this definition are loaded from now on; `undefined`: they are loaded. */
  onLoad?(definition: number | undefined): void;
  /** A definition of the peer was read; `loading` while it has modules to load. */
  onLearn?(loading: Promise<void> | undefined): void;
}

export interface LinkOptions {
  readonly end: ChannelEnd;
  readonly exporter: Exporter;
  readonly importer: Importer;
  /** Set if the peer is a thread of this process. */
  readonly parcels?: Parcels | undefined;
  /** Frames that a peer which is not trusted may send: another one ends the channel. Default: all. */
  readonly frames: ReadonlySet<number> | undefined;
  /** True: the peer is on another machine, and may have other files. */
  readonly isFar?: boolean;
  /** Prefix of the path in errors about values sent from here: "an argument", "the result". */
  readonly what: string;
  readonly events: LinkEvents;
}

/** Returns the rest of a frame, as bytes to keep. */
export function rest(body: ByteReader): Buffer {
  return body.copy(body.limit - body.position);
}

/** Returns the error of reading a value as a `CodedError`. */
export function readError(error: unknown): CodedError {
  if (error instanceof CodedError) return error;
  const text = `a value that came cannot be read: ${messageOf(error)}`;
  return new CodedError('TRANSFER_CORRUPT', text, { cause: error });
}

const noBytes = new Uint8Array(0);

function kindOf({ isChunk, snapshot }: Call): number {
  if (isChunk) return frame.chunk; // its function is pinned, so there is no state
  return snapshot.state === undefined ? frame.call : frame.callWithState;
}

const writeRaw: BodyWriter<Uint8Array> = (writer, bytes) => {
  writer.raw(bytes);
  return true;
};

export class Link {
  readonly codec: Codec;
  readonly #channel: Channel;
  readonly #end: ChannelEnd;
  readonly importer: Importer;
  readonly #exporter: Exporter;
  readonly #isFar: boolean;
  readonly #parcels: Parcels | undefined;
  readonly #frames: ReadonlySet<number> | undefined;
  readonly #known = new Set<number>();
  readonly #events: LinkEvents;
  readonly #outbox: { readonly send: () => SendOutcome; readonly sizeBytes: number }[] = [];
  #outboxBytes = 0;
  /** True: the owner keeps the loop alive; frames in the outbox keep it alive as well. */
  #isWanted = false;
  #lentBytes = 0;
  /** Set only while a definition loads its modules. */
  #held: HeldFrame[] | undefined;
  readonly #writeFast: BodyWriter<unknown>;
  readonly #writePacked: BodyWriter<Packed>;
  readonly #writeCall: BodyWriter<Call>;

  constructor(options: LinkOptions) {
    const { end, exporter, importer, parcels, frames, isFar = false, what, events } = options;
    this.#isFar = isFar;
    this.#parcels = parcels;
    this.#frames = frames;
    this.#end = end;
    this.#channel = end.channel;
    this.#exporter = exporter;
    this.importer = importer;
    this.codec = new Codec({
      blocks: end.blocks,
      isTrusted: frames === undefined,
      slow: {
        encode: (value, given = what) => encodedOf(exporter.exportValue(value, given)),
        decode: (bytes) => importer.importValue(bytes),
      },
    });
    this.#writeFast = (writer, value) => this.codec.tryWrite(writer, value);
    this.#writePacked = (writer, packed) => this.codec.writePacked(writer, packed);
    this.#writeCall = (writer, call) => this.#writeCallBody(writer, call);
    this.#events = events;
    const closed = (error?: Error) => ({
      kind: undefined,
      task: 0,
      deliver: () => this.#closed(error),
    });
    this.#channel.handle({
      onFrame: (kind, task, target, body) => this.#receive(kind, task, target, body),
      onDrain: () => {
        if (this.#flushOutbox()) events.onDrain();
      },
      onClose: (error) => this.#afterHeld(closed(error)),
    });
    this.#announceBlocks(end);
  }

  #announceBlocks({ blocks, refTransfer }: ChannelEnd): void {
    blocks?.handleUnused((block, count) => this.#postBlock(frame.release, block, count));
    refTransfer?.handle({
      onInherit: (block, count) => this.#postBlock(frame.inherit, block, count),
      onStep: (member, step) => {
        this.#enqueue(() => this.#channel.trySend(frame[step], 0, member, writeRaw, noBytes));
      },
    });
  }

  /** Handles the end of the channel, after everything from the peer was read. */
  #closed(error: Error | undefined): void {
    try {
      this.#events.onClose(error);
    } finally {
      this.#end.refTransfer?.finishReading(); // memory of those that end later waits for it, too
    }
  }

  #receive(kind: number, task: number, target: number, body: ByteReader): void {
    if (this.#frames?.has(kind) === false) {
      this.fail(
        new CodedError(
          'PARTITION_CODE',
          `it sent a frame of kind ${kind}, which no partition may send`,
        ),
      );
      return;
    }
    if (this.#held !== undefined && !this.#passesHeld(kind)) {
      const bytes = rest(body);
      holdFrame(this.#held, { kind, task, target }, (to) =>
        this.#receive(kind, task, to, new ByteReader(bytes)),
      );
    } else if (kind === frame.define) {
      this.#learn(target, rest(body));
    } else if (kind === frame.release) {
      const { block, count } = readBlock(body);
      this.#end.blocks?.takeBack(block, count);
    } else if (kind === frame.inherit) {
      const { block, count } = readBlock(body);
      this.#end.refTransfer?.inherit(block, count);
    } else if (kind === frame.transferred || kind === frame.settled) {
      this.#end.refTransfer?.receiveStep(
        target,
        kind === frame.transferred ? 'transferred' : 'settled',
      );
    } else {
      this.#events.onFrame(kind, task, target, body);
    }
  }

  /**
   * True for a frame that needs no definition, and whose answer shows that the loop turns. Without claims,
   * held calls count as begun for the parent, and must not seem to go on: then nothing passes.
   */
  #passesHeld(kind: number): boolean {
    const isRequest = kind === frame.requestMemory || kind === frame.profile;
    return isRequest && this.#end.claims !== undefined;
  }

  #learn(id: number, bytes: Uint8Array): void {
    this.#events.onLoad?.(id);
    const loading = this.#define(id, bytes);
    this.#events.onLearn?.(loading);
    if (loading === undefined) {
      this.#events.onLoad?.(undefined);
      return;
    }
    this.#held = [];
    // A definition that failed is reported by the frames that need it: reading them throws then.
    const resume = () => {
      this.#events.onLoad?.(undefined);
      const held = this.#held ?? [];
      this.#held = undefined;
      for (const each of held) this.#afterHeld(each);
    };
    void loading.then(resume, resume);
  }

  /** Reports a module that throws while `require` loads it as one that `import()` loads. */
  #define(id: number, bytes: Uint8Array): Promise<void> | undefined {
    try {
      return this.importer.define(id, bytes) ?? undefined;
    } catch (error) {
      return error instanceof CodedError ? Promise.reject(error) : Promise.reject(readError(error));
    }
  }

  /** Handles a frame now, or in turn after the frames that are held. */
  #afterHeld(each: HeldFrame): void {
    if (this.#held === undefined) each.deliver();
    else this.#held.push(each);
  }

  #writeCallBody(writer: ByteWriter, call: Call): boolean {
    const state = call.snapshot.state;
    if (state !== undefined) {
      writer.i32(state.byteLength);
      writer.raw(state);
    }
    if (call.packed !== undefined) return this.codec.writePacked(writer, call.packed);
    return this.codec.tryWrite(writer, call.args);
  }

  /** Sends a call. After `full`, `onDrain` follows; after `closed`, the worker's `onExit`. */
  trySendCall(slot: number, call: Call): 'sent' | 'full' | 'closed' {
    if (this.#outbox.length > 0) return 'full';
    const { id, definitions, state, buffers } = call.snapshot;
    if (!this.#known.has(id)) {
      if (state === undefined) this.#postParcel(call.snapshot.parcel);
      this.define(definitions);
      if (state === undefined) this.#lend(blocksOf(buffers)); // its definition names them
    } else if (state !== undefined) {
      this.define(definitions); // this call's values may need definitions that the call before did not
    }
    const packed = call.packed;
    if (packed !== undefined && packed.definitions.length > 0) this.define(packed.definitions);
    if (this.#outbox.length > 0) return 'full';
    const kind = kindOf(call);
    if (parcelsOf(call).length > 0) return this.#sendWithParcels(kind, slot, call);
    const outcome = this.#channel.trySend(kind, slot, id, this.#writeCall, call);
    if (outcome === 'refused') {
      throw new CodedError('WORKER_PROTOCOL', 'arguments that can change were not packed');
    }
    if (outcome === 'sent') this.#lendCall(call);
    return outcome;
  }

  #lendCall({ snapshot: { state, buffers }, packed }: Call): void {
    if (state !== undefined && buffers.length > 0) this.#lend(blocksOf(buffers));
    if (packed !== undefined) this.#lend(packed.blocks);
  }

  /** Posts the parcels, after which the frame must follow: without room it waits in the outbox. */
  #sendWithParcels(kind: number, slot: number, call: Call): 'sent' | 'closed' {
    for (const parcel of parcelsOf(call)) this.#postParcel(parcel);
    const outcome = this.#enqueue(() => {
      const sent = this.#channel.trySend(kind, slot, call.snapshot.id, this.#writeCall, call);
      if (sent === 'sent') this.#lendCall(call);
      return sent;
    });
    return outcome === 'closed' ? 'closed' : 'sent';
  }

  #postParcel(parcel: Parcel | undefined): void {
    if (parcel !== undefined) this.#parcels?.post(parcel);
  }

  /** Sends the definitions that the peer does not have, in this order. */
  define(definitions: readonly number[]): void {
    for (const id of definitions) {
      if (this.#known.has(id)) continue;
      this.#known.add(id);
      const own = this.#exporter.definition(id);
      const bytes = this.#isFar ? withVersion(own) : own;
      this.#events.onDefine?.();
      this.#enqueue(() => this.#channel.trySend(frame.define, 0, id, writeRaw, bytes));
    }
  }

  /** Lets the peer drop a pinned function. */
  forget(id: number): void {
    if (!this.#known.delete(id)) return;
    this.#enqueue(() => this.#channel.trySend(frame.forget, 0, id, writeRaw, noBytes));
  }

  /**
   * Sends a value for certain, packed when it needs more than the fast codec. May throw `TRANSFER_…`, which
   * names the value `what` (default: as the link's options).
   */
  post(kind: number, task: number, target: number, value: unknown, what?: string): void {
    if (this.#outbox.length === 0) {
      const outcome = this.#channel.trySend(kind, task, target, this.#writeFast, value);
      if (outcome === 'sent') return;
      this.codec.unsend();
      if (outcome === 'closed') return;
    }
    const packed = this.codec.pack(value, what);
    this.#postParcel(packed.parcel);
    this.define(packed.definitions);
    this.#postPacked(kind, task, target, packed);
  }

  /** Sends a snapshot of the exporter unchanged, with the definitions that it needs. */
  postSnapshot(kind: number, task: number, target: number, snapshot: ValueSnapshot): void {
    this.#postParcel(snapshot.parcel);
    this.define(snapshot.definitions);
    const packed = encodedOf(snapshot);
    for (const block of packed.blocks) this.#end.blocks?.hold(block);
    this.#postPacked(kind, task, target, packed);
  }

  /** `packed.blocks` are held until it is sent. */
  #postPacked(kind: number, task: number, target: number, packed: Packed): void {
    const { bytes, blocks } = packed;
    const sizeBytes = blocks.reduce((sum, block) => sum + block.sizeBytes, bytes.byteLength);
    this.#enqueue(() => {
      const outcome = this.#channel.trySend(kind, task, target, this.#writePacked, packed);
      if (outcome !== 'full') {
        if (outcome === 'sent') this.#lend(packed.blocks);
        this.codec.release(packed);
      }
      return outcome;
    }, sizeBytes);
  }

  #postBlock(kind: number, block: Block, count: number): void {
    this.#enqueue(() => this.#channel.trySend(kind, 0, 0, writeBlock, { block, count }));
  }

  /** Takes back the blocks and parcels of a sent call that was reclaimed before it started. */
  unlend(call: Call): void {
    const { snapshot, packed } = call;
    if (snapshot.state !== undefined) this.#unlend(blocksOf(snapshot.buffers));
    if (packed !== undefined) this.#unlend(packed.blocks);
    for (const parcel of parcelsOf(call)) this.#parcels?.recall(parcel);
  }

  #unlend(blocks: readonly Block[]): void {
    for (const block of blocks) this.#end.blocks?.takeBack(block, 1);
  }

  ref(): void {
    this.#isWanted = true;
    this.#channel.ref();
  }

  unref(): void {
    this.#isWanted = false;
    if (this.#outbox.length === 0) this.#channel.unref();
  }

  close(): void {
    this.#channel.close();
  }

  /** Ends the channel at once, because of what the peer has sent. */
  fail(error: CodedError): void {
    this.#channel.destroy();
    this.#closed(error);
  }

  destroy(): void {
    this.#outbox.length = 0;
    this.#outboxBytes = 0;
    if (this.#held !== undefined) this.#held.length = 0;
    this.#channel.destroy();
    this.#end.blocks?.returnAll();
  }

  #lend(blocks: readonly Block[]): void {
    for (const block of blocks) {
      this.#lentBytes += block.sizeBytes;
      this.#end.blocks?.lend(block);
    }
  }

  /** Bytes of sent frames, and of blocks lent with them. */
  get sentBytes(): number {
    return this.#channel.sentBytes + this.#lentBytes;
  }

  /** Bytes of received frames, and of blocks borrowed with them. */
  get receivedBytes(): number {
    return this.#channel.receivedBytes + (this.#end.blocks?.borrowedBytes ?? 0);
  }

  /** Number of frames that wait for room. */
  get waitingFrames(): number {
    return this.#outbox.length;
  }

  /** Bytes of the values in them. */
  get waitingBytes(): number {
    return this.#outboxBytes;
  }

  /** Sends now or enqueues; `full`: it waits in the outbox. */
  #enqueue(send: () => SendOutcome, sizeBytes = 0): SendOutcome {
    const outcome = this.#outbox.length === 0 ? send() : 'full';
    if (outcome !== 'full') return outcome;
    if (this.#outbox.length === 0) this.#channel.ref();
    this.#outbox.push({ send, sizeBytes });
    this.#outboxBytes += sizeBytes;
    return 'full';
  }

  /** Returns true when no frame waits any more. */
  #flushOutbox(): boolean {
    let sent = 0;
    while (sent < this.#outbox.length && this.#outbox[sent]?.send() !== 'full') sent += 1;
    for (const { sizeBytes } of this.#outbox.splice(0, sent)) this.#outboxBytes -= sizeBytes;
    if (this.#outbox.length > 0) return false;
    if (!this.#isWanted) this.#channel.unref();
    return true;
  }
}
