// Who receives what is sent in this loop: its own consumers, and peers, which hear of those that they may
// reach. Where there is an uplink it carries everything, also to those that are near: it alone knows all
// consumers, so each gets its turn. Not here: whose turn it is among those that are known (routes.ts).

import { Consumer } from './consumer.js';
import type { Peer, Uplink } from './peer.js';
import { reservedPrefix, streamPrefix } from './reserved.js';
import { Routes } from './routes.js';

/** Consumers of this loop alone, or before those of others. */
export type Locality = 'only' | 'prefer' | undefined;

export class Receivers {
  readonly #consumers = new Routes<Consumer>();
  /** Those of them that peers reach. */
  readonly #open = new Routes<Consumer>();
  /** The others. */
  readonly #near = new Routes<Consumer>();
  /** All consumers, and peers by how many they have. */
  readonly #all = new Routes<Consumer | Peer>();
  readonly #peers = new Set<Peer>();
  /** Who wants to know that an address has nobody any more. */
  readonly #watchers = new Map<string, Set<() => void>>();
  #uplink: Uplink | undefined;
  /** Of what is sent without a word on it, where there is an uplink. */
  #locality: Locality;

  /** The consumers that are here, each once. */
  get here(): Set<Consumer> {
    return this.#consumers.everyone();
  }

  /** Whether nothing waits at a peer. */
  get hasRoom(): boolean {
    for (const peer of this.#peers) if (!peer.hasRoom) return false;
    return true;
  }

  /** Resolves when others know of the consumers here, as far as that can be known. */
  async flush(): Promise<void> {
    await this.#uplink?.flush();
  }

  add(consumer: Consumer, isLocal: boolean): void {
    this.#set(consumer, isLocal, 1);
  }

  delete(consumer: Consumer, isLocal: boolean): void {
    this.#set(consumer, isLocal, 0);
  }

  #set(consumer: Consumer, isLocal: boolean, weight: 0 | 1): void {
    const { address } = consumer;
    this.#consumers.set(address, consumer, weight);
    this.#setAll(address, consumer, weight);
    if (isLocal) {
      this.#near.set(address, consumer, weight);
      return;
    }
    this.#open.set(address, consumer, weight);
    for (const peer of this.#peers) this.#tell(peer, address);
  }

  #tell(peer: Peer, address: string): void {
    peer.tell(address, this.#open.all(address).length);
  }

  addPeer(peer: Peer): void {
    this.#peers.add(peer);
    for (const address of this.#open.addresses()) this.#tell(peer, address);
  }

  /** What is sent goes there, unless `locality`, or the sender, says otherwise. */
  setUplink(uplink: Uplink, locality: Locality): void {
    this.#uplink = uplink;
    this.#locality = locality;
    this.addPeer(uplink);
  }

  /** Where there is one that takes messages to this address. */
  uplinkFor(address: string): Uplink | undefined {
    const isOurs = address.startsWith(reservedPrefix) && !address.startsWith(streamPrefix);
    return isOurs ? undefined : this.#uplink;
  }

  /** A peer has so many consumers from now on. */
  setPeer(peer: Peer, address: string, consumers: number): void {
    if (this.#peers.has(peer)) this.#setAll(address, peer, consumers);
  }

  deletePeer(peer: Peer): void {
    this.#peers.delete(peer);
    if (peer === this.#uplink) this.#uplink = undefined;
    for (const address of this.#all.addresses()) this.#setAll(address, peer, 0);
  }

  #setAll(address: string, receiver: Consumer | Peer, weight: number): void {
    this.#all.set(address, receiver, weight);
    if (weight > 0 || this.#watchers.size === 0 || this.#all.has(address)) return;
    const watchers = this.#watchers.get(address);
    this.#watchers.delete(address);
    if (watchers !== undefined) tellGone(watchers);
  }

  /** Calls `onGone` once when an address has nobody (any more), unless what it returns was called. */
  watch(address: string, onGone: () => void): () => void {
    const isKnown = this.#all.has(address);
    const uplink = isKnown ? undefined : this.uplinkFor(address);
    if (uplink !== undefined) return uplink.watch(address, onGone);
    const watchers = this.#watchers.get(address) ?? new Set();
    watchers.add(onGone);
    if (isKnown) this.#watchers.set(address, watchers);
    else tellGone(watchers);
    return () => {
      watchers.delete(onGone);
      if (watchers.size === 0 && this.#watchers.get(address) === watchers) {
        this.#watchers.delete(address);
      }
    };
  }

  /** Whose turn it is. */
  next(address: string, locality: Locality): Consumer | Peer | undefined {
    const uplink = this.uplinkFor(address);
    if (uplink === undefined) {
      const here = locality === undefined ? undefined : this.#consumers.next(address);
      return locality === 'only' ? here : (here ?? this.#all.next(address));
    }
    // Both ends of a stream are in one place each, and those who talk to them know it or not.
    const wanted = address.startsWith(streamPrefix) ? 'prefer' : (locality ?? this.#locality);
    if (wanted === undefined) return this.#near.next(address) ?? uplink;
    const here = this.#consumers.next(address);
    return wanted === 'only' ? here : (here ?? this.#all.next(address) ?? uplink);
  }

  /** Whose turn it is for what a peer sends. */
  nextForPeer(address: string): Consumer | undefined {
    return this.#open.next(address);
  }

  /** Those here that nothing else tells of what is published. */
  consumersOf(address: string, locality: Locality): readonly Consumer[] {
    const isCarried = locality !== 'only' && this.uplinkFor(address) !== undefined;
    return (isCarried ? this.#near : this.#consumers).all(address);
  }

  consumersForPeer(address: string): readonly Consumer[] {
    return this.#open.all(address);
  }

  /** Where there is an uplink, nobody: it tells them. */
  peersOf(address: string): readonly Peer[] {
    if (this.uplinkFor(address) !== undefined) return [];
    return this.#all.all(address).filter((each): each is Peer => !(each instanceof Consumer));
  }
}

/** Once what was sent in this loop until now has been handed on; those that still want to know then. */
function tellGone(watchers: ReadonlySet<() => void>): void {
  setImmediate(() => {
    setImmediate(() => {
      for (const onGone of watchers) onGone();
    });
  });
}
