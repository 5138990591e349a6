// The receivers of messages that are sent in this loop: its own consumers, and peers, to which it announces
// those that they may reach. An uplink carries everything, also to near receivers: only the servers have all
// consumers, so only they can give each its turn. Not here: choosing among known receivers (routes.ts).

import { beforeDeadline, setImmediate } from '../../lib/index.js';
import { reservedPrefix, streamPrefix } from '../reserved.js';
import type { Peer, RemoteTransport, Uplink } from '../transports/transport.js';
import { Consumer } from './consumer.js';
import { Routes } from './routes.js';
import type { TurnQueue } from './turn-queue.js';

/** Consumers of this loop alone (`only`), or before those of others (`prefer`). */
export type Locality = 'only' | 'prefer' | undefined;

/** An uplink that takes longer does not delay a consumer that moves; in ms. */
const catchUpMs = 5000;

/** Visibility to peers of a consumer that is between two loops. */
export interface View {
  /** True: it gets messages of this peer. */
  readonly isReached: (by: RemoteTransport) => boolean;
  /** True: it is in the count that this peer gets. */
  readonly isAnnouncedTo: (to: RemoteTransport) => boolean;
}

/** A consumer of a peer that is not in its count. */
interface Extra {
  readonly peer: Peer;
  readonly address: string;
  /** True: it has come to the peer, and ends with it; false: it leaves the peer. */
  readonly hasCome: boolean;
}

/** Called when so many consumers of an address have ended. */
export type OnEnd = (address: string, reason: 'closed' | 'lost', count: number) => void;

export class Receivers {
  /** True: addresses are to be checked. */
  hasUplink = false;
  readonly #consumers = new Routes<Consumer>();
  /** The consumers that peers reach. */
  readonly #open = new Routes<Consumer>();
  /** All consumers, and peers by how many they have. */
  readonly #all = new Routes<Consumer | Peer>();
  readonly #peers = new Set<Peer>();
  /** Peers that have no turn, unless nobody else is there. */
  readonly #blocked = new Set<Consumer | Peer>();
  /** By consumers that are between two loops. */
  readonly #views = new Map<Consumer, View>();
  /** Consumers of peers that are not in their counts yet, or no more, by token of the hand-off. */
  readonly #extras = new Map<string, Extra>();
  /** Called when an address has no receivers any more, by address. */
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #queue: TurnQueue;
  readonly #onEnd: OnEnd;
  readonly #whenDrained: (() => void)[] = [];
  #uplink: Uplink | undefined;
  /** For messages without an option of their own, where there is an uplink. */
  #locality: Locality;
  /** Consumers that no uplink has, and the uplink for the others of their addresses. */
  readonly #near = new Routes<Consumer | Uplink>();

  /** `queue`: messages for consumers here wait in it. */
  constructor(queue: TurnQueue, onEnd: OnEnd = () => {}) {
    this.#queue = queue;
    this.#onEnd = onEnd;
  }

  /** The consumers that are here, each once. */
  get here(): Set<Consumer> {
    return this.#consumers.everyone();
  }

  /** True: not much waits here, and nothing at a peer or the uplink. */
  get hasRoom(): boolean {
    if (!this.#queue.hasRoom) return false;
    for (const peer of this.#peers) if (!peer.hasRoom) return false;
    return this.#uplink?.hasRoom ?? true;
  }

  /**
   * Resolves when there is room, and other machines have been notified of the consumers here, as far as a
   * flush guarantees it.
   */
  async drained(): Promise<void> {
    if (!this.hasRoom) await new Promise<void>((resolve) => this.#whenDrained.push(resolve));
    await this.#uplink?.flush();
  }

  /** One of the transports has room again, or is gone. */
  noteDrained(): void {
    if (this.#whenDrained.length === 0 || !this.hasRoom) return;
    for (const resolve of this.#whenDrained.splice(0)) resolve();
  }

  /**
   * Resolves when everything has arrived that was on its way from an uplink, and it has the consumers here;
   * without an uplink at once. Never rejects.
   */
  async catchUp(): Promise<void> {
    if (this.#uplink === undefined) return;
    const onDeadline = (): Error => new Error('the uplink is slow');
    await beforeDeadline(this.#uplink.catchUp(), { deadlineMs: catchUpMs, onDeadline }).catch(
      () => {},
    );
  }

  add(consumer: Consumer, isLocal: boolean): void {
    this.#set(consumer, isLocal, 1);
  }

  delete(consumer: Consumer, isLocal: boolean): void {
    this.#set(consumer, isLocal, 0);
  }

  /** Deletes a consumer whose successor has its place already: peers have the same count as before. */
  leave(consumer: Consumer, isLocal: boolean): void {
    this.setHere(consumer, 0);
    if (!isLocal) this.setOpen(consumer, 0);
  }

  /** Deletes a consumer that its owner has closed. */
  closed(consumer: Consumer, isLocal: boolean): void {
    const { address } = consumer;
    const wasHere = this.#consumers.weightOf(address, consumer) > 0;
    this.delete(consumer, isLocal);
    if (wasHere) this.#onEnd(address, 'closed', 1);
  }

  /** True: the program has a consumer of this address. */
  has(address: string): boolean {
    return this.#all.has(address);
  }

  #set(consumer: Consumer, isLocal: boolean, weight: 0 | 1): void {
    this.setHere(consumer, weight);
    if (isLocal) return;
    this.setOpen(consumer, weight);
    this.announceToAll(consumer.address);
  }

  /** Sets whether it gets messages of this loop. */
  setHere(consumer: Consumer, weight: 0 | 1): void {
    this.#consumers.set(consumer.address, consumer, weight);
    this.#setNear(consumer);
    this.#setAll(consumer.address, consumer, weight);
  }

  /** Sets whether it gets messages of peers, within `view`; does not announce it. */
  setOpen(consumer: Consumer, weight: 0 | 1, view?: View): void {
    this.#open.set(consumer.address, consumer, weight);
    if (view === undefined) this.#views.delete(consumer);
    else this.#views.set(consumer, view);
    this.#setNear(consumer);
  }

  #setNear(consumer: Consumer): void {
    const { address } = consumer;
    const isHere = this.#consumers.weightOf(address, consumer) > 0;
    const isOpen = this.#open.weightOf(address, consumer) > 0;
    this.#near.set(address, consumer, isHere && !isOpen ? 1 : 0);
  }

  announceToAll(address: string): void {
    for (const peer of this.#peers) this.#announce(peer, address);
    this.announceToUplink(address);
  }

  announceToUplink(address: string): void {
    if (this.#uplink !== undefined) this.#announce(this.#uplink, address);
  }

  #announce(peer: RemoteTransport, address: string): void {
    peer.announce(address, this.countFor(peer, address));
  }

  /** Returns the number of consumers that is announced to a peer. */
  countFor(peer: RemoteTransport, address: string): number {
    const all = this.#open.all(address);
    if (this.#views.size === 0) return all.length;
    return all.filter((each) => this.#views.get(each)?.isAnnouncedTo(peer) ?? true).length;
  }

  /** Counts one consumer more for a peer than it has announced, until `endExtra`; a token has one at most. */
  addExtra(token: string, peer: Peer, address: string, hasCome: boolean): void {
    const before = this.#extras.get(token);
    this.#extras.set(token, { peer, address, hasCome });
    this.#addWeight(address, peer, 1);
    if (before !== undefined) this.#addWeight(before.address, before.peer, -1);
  }

  endExtra(token: string): void {
    const extra = this.#extras.get(token);
    this.#extras.delete(token);
    if (extra !== undefined) this.#addWeight(extra.address, extra.peer, -1);
  }

  /** The peer has announced its count, which includes the consumer of this token. */
  setPeerWith(token: string, peer: Peer, address: string, consumers: number): void {
    if (this.#extras.get(token)?.peer === peer) this.#extras.delete(token);
    else this.endExtra(token);
    this.setPeer(peer, address, consumers);
  }

  #addWeight(address: string, peer: Peer, more: 1 | -1): void {
    this.#setAll(address, peer, Math.max(0, this.#all.weightOf(address, peer) + more));
  }

  #extrasOf(peer: Peer, address: string): number {
    let count = 0;
    for (const each of this.#extras.values()) {
      if (each.peer === peer && each.address === address) count += 1;
    }
    return count;
  }

  /** Returns the number of consumers that go on elsewhere when the peer is gone. */
  #leaving(peer: Peer, address: string): number {
    const extras = [...this.#extras.values()].filter((each) => each.peer === peer && !each.hasCome);
    return extras.filter((each) => each.address === address).length;
  }

  addPeer(peer: Peer): void {
    this.#peers.add(peer);
    for (const address of this.#open.addresses()) this.#announce(peer, address);
  }

  get peers(): ReadonlySet<Peer> {
    return this.#peers;
  }

  /**
   * Sends everything there, unless `locality`, or the sender, excludes it. Throws `OPTION_INVALID` where a
   * consumer here has an address that cannot go there: then nothing has changed.
   */
  setUplink(uplink: Uplink, locality: Locality): void {
    const addresses = this.#open.addresses();
    for (const address of addresses) uplink.check(address);
    this.#uplink = uplink;
    this.hasUplink = true;
    this.#locality = locality;
    for (const address of addresses) this.#announce(uplink, address);
  }

  isUplink(outlet: RemoteTransport): boolean {
    return outlet === this.#uplink;
  }

  endUplink(): void {
    const uplink = this.#uplink;
    this.#uplink = undefined;
    this.hasUplink = false;
    if (uplink === undefined) return;
    for (const address of this.#near.addresses()) this.#near.set(address, uplink, 0);
  }

  /** Throws `OPTION_INVALID` for an address that cannot go by the uplink, which it would. */
  check(address: string): void {
    this.uplinkFor(address)?.check(address);
  }

  /** Returns the uplink, unless messages to this address cannot go there. */
  uplinkFor(address: string): Uplink | undefined {
    const isOurs = address.startsWith(reservedPrefix) && !address.startsWith(streamPrefix);
    return isOurs ? undefined : this.#uplink;
  }

  /** The peer has announced its number of consumers: those that are missing have ended. */
  announced(peer: Peer, address: string, consumers: number): void {
    const before = this.#all.weightOf(address, peer);
    this.setPeer(peer, address, consumers);
    const ended = before - this.#all.weightOf(address, peer);
    if (ended > 0) this.#onEnd(address, 'closed', ended);
  }

  /** Sets a peer's number of consumers. */
  setPeer(peer: Peer, address: string, consumers: number): void {
    if (!this.#peers.has(peer)) return;
    const extras = this.#extras.size === 0 ? 0 : this.#extrasOf(peer, address);
    this.#setAll(address, peer, consumers + extras);
  }

  /** Messages for one of several consumers go to others while the peer is blocked. */
  setBlocked(peer: Peer, isBlocked: boolean): void {
    if (isBlocked && this.#peers.has(peer)) this.#blocked.add(peer);
    else this.#blocked.delete(peer);
  }

  /** `isLeft`: its consumers may live on, out of reach; else they have ended. */
  deletePeer(peer: Peer, isLeft = false): void {
    this.#peers.delete(peer);
    this.#blocked.delete(peer);
    const lost = this.#all.addresses().map((address) => {
      return { address, count: this.#all.weightOf(address, peer) - this.#leaving(peer, address) };
    });
    for (const [token, extra] of this.#extras) {
      if (extra.peer === peer) this.#extras.delete(token);
    }
    for (const { address, count } of lost) {
      this.#setAll(address, peer, 0);
      if (!isLeft && count > 0) this.#onEnd(address, 'lost', count);
    }
  }

  #setAll(address: string, receiver: Consumer | Peer, weight: number): void {
    this.#all.set(address, receiver, weight);
    if (weight > 0 || this.#watchers.size === 0 || this.#all.has(address)) return;
    const watchers = this.#watchers.get(address);
    this.#watchers.delete(address);
    if (watchers !== undefined) notifyGone(watchers);
  }

  /** Calls `onGone` once when an address has no receiver (any more); returns a function that stops watching. */
  watch(address: string, onGone: () => void): () => void {
    const isKnown = this.#all.has(address);
    const uplink = isKnown ? undefined : this.uplinkFor(address);
    if (uplink !== undefined) return uplink.watch(address, () => onGone());
    const watchers = this.#watchers.get(address) ?? new Set();
    watchers.add(onGone);
    if (isKnown) this.#watchers.set(address, watchers);
    else notifyGone(watchers);
    return () => {
      watchers.delete(onGone);
      if (watchers.size === 0 && this.#watchers.get(address) === watchers) {
        this.#watchers.delete(address);
      }
    };
  }

  /** Returns the next receiver, by turns. */
  next(address: string, locality: Locality): Consumer | RemoteTransport | undefined {
    const uplink = this.uplinkFor(address);
    if (uplink === undefined) {
      const here = locality === undefined ? undefined : this.#consumers.next(address);
      return locality === 'only' ? here : (here ?? this.#nextOfAll(address));
    }
    // Each end of a stream is on one loop: a peer has announced it, or it is on another machine.
    const wanted = address.startsWith(streamPrefix) ? 'prefer' : (locality ?? this.#locality);
    if (wanted === undefined) return this.#nextNear(address, uplink);
    const here = this.#consumers.next(address);
    return wanted === 'only' ? here : (here ?? this.#nextOfAll(address) ?? uplink);
  }

  #nextOfAll(address: string): Consumer | Peer | undefined {
    if (this.#blocked.size === 0) return this.#all.next(address);
    return this.#all.next(address, (each) => !this.#blocked.has(each)) ?? this.#all.next(address);
  }

  /**
   * By turns: consumers here that are on no uplink, and the uplink as often as the program has others.
   * Consumers on other machines are not counted: where the program has none, all goes to those here.
   */
  #nextNear(address: string, uplink: Uplink): Consumer | Uplink | undefined {
    if (!this.#near.has(address)) return uplink;
    const near = this.#nearOf(address).length;
    this.#near.set(address, uplink, near === 0 ? 0 : this.#all.totalOf(address) - near);
    return this.#near.next(address) ?? uplink;
  }

  /** Returns the consumers here that no uplink has. */
  #nearOf(address: string): readonly Consumer[] {
    return this.#near.all(address).filter((each) => each instanceof Consumer);
  }

  /** Returns the next consumer for a message of a peer. */
  nextForPeer(peer: RemoteTransport, address: string): Consumer | undefined {
    if (this.#views.size === 0) return this.#open.next(address);
    return this.#open.next(address, (each) => this.#isReached(each, peer));
  }

  #isReached(consumer: Consumer, by: RemoteTransport): boolean {
    return this.#views.get(consumer)?.isReached(by) ?? true;
  }

  /** Returns the consumers here that a publication reaches no other way. */
  consumersOf(address: string, locality: Locality): readonly Consumer[] {
    const isCarried = locality !== 'only' && this.uplinkFor(address) !== undefined;
    return isCarried ? this.#nearOf(address) : this.#consumers.all(address);
  }

  consumersForPeer(peer: RemoteTransport, address: string): readonly Consumer[] {
    return this.#open.all(address).filter((each) => this.#isReached(each, peer));
  }

  /** Returns the peers for a publication; none where there is an uplink, which reaches them. */
  peersOf(address: string): readonly Peer[] {
    if (this.uplinkFor(address) !== undefined) return [];
    return this.#all.all(address).filter((each): each is Peer => !(each instanceof Consumer));
  }
}

/** Calls the remaining watchers once everything that was sent in this loop until now was delivered. */
function notifyGone(watchers: ReadonlySet<() => void>): void {
  setImmediate(() => {
    setImmediate(() => {
      for (const onGone of watchers) onGone();
    });
  });
}
