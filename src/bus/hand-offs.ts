// How a consumer goes from one loop's bus to another's, its successor there, while others send to it: nothing
// is lost or comes twice, and what one of them sends comes in its order. The old home holds what comes. It
// then gives that to the successor, and what still comes to it, through one stream; and says to its peers that
// the consumer `moved`. Each of them sends to the successor from then on, and says to both homes that it has
// `switched`: to the old one behind the last message that it sends there, to the new one ahead of the
// first. The old home passes that on in its stream, and until then the successor keeps aside what this peer
// sends straight to it. Nobody waits for anybody else: a peer that is blocked switches later. When all have
// switched the old consumer has `ended`.
//
// An uplink knows both homes for a while. The new one catches up with it before the successor is known there and
// after, and the old one before it says `ended`: so all comes one way or the other, and what comes both ways
// the successor takes once (publications.ts).
//
// A way has a token: what goes through the stream is addressed to it. The two ends of a way are in
// outgoing-hand-off.ts and incoming-hand-off.ts, the third side, which sends, is here.
// Not here: the unit and its state (units/), who decides that it moves.

import { randomUUID } from 'node:crypto';
import type { Consumer } from './consumer.js';
import { IncomingHandOff, type Successor } from './incoming-hand-off.js';
import type { Delivery } from './message.js';
import { type HandOffRoute, OutgoingHandOff } from './outgoing-hand-off.js';
import type { Outlet, Peer } from './peer.js';
import type { HandOffNote } from './protocol.js';
import type { Receivers } from './receivers.js';
import type { TurnQueue } from './turn-queue.js';

/** What ways need of their bus. */
export interface HandOffsParts {
  readonly receivers: Receivers;
  readonly queue: TurnQueue;
  /** To a peer; what cannot travel is told to who waits for it. */
  readonly hand: (peer: Peer, delivery: Delivery) => void;
  /** To whose turn it is, where the successor is gone. */
  readonly passOn: (delivery: Delivery) => void;
}

/** A consumer of a peer that goes elsewhere, as one sees it who sends to it. */
interface Move {
  readonly address: string;
  readonly from: Peer;
  /** The name of the bus to which it goes. */
  readonly to: string;
}

export class HandOffs {
  /** Of this bus, among all. */
  readonly name = randomUUID();
  readonly #parts: HandOffsParts;
  readonly #names = new Map<Peer, string>();
  /** By their tokens. */
  readonly #outgoing = new Map<string, OutgoingHandOff>();
  readonly #incoming = new Map<string, IncomingHandOff>();
  readonly #moves = new Map<string, Move>();

  constructor(parts: HandOffsParts) {
    this.#parts = parts;
  }

  peerAdded(peer: Peer): void {
    peer.note({ type: 'named', name: this.name });
    for (const each of this.#outgoing.values()) each.tell(peer);
  }

  peerEnded(peer: Peer): void {
    const name = this.#names.get(peer);
    this.#names.delete(peer);
    for (const [token, { from }] of this.#moves) if (from === peer) this.#moves.delete(token);
    for (const each of this.#outgoing.values()) each.peerEnded(peer, name);
    for (const each of this.#incoming.values()) each.peerEnded(peer, name);
  }

  /** There is room again on the way to peers. */
  drained(): void {
    for (const each of this.#outgoing.values()) each.flush();
  }

  /** The bus is closed: what was on a way comes back. */
  close(): Delivery[] {
    return [...this.#outgoing.values()].flatMap((each) => each.takeAll());
  }

  #peerNamed(name: string): Peer | undefined {
    for (const [peer, its] of this.#names) if (its === name) return peer;
    return undefined;
  }

  #nameOf(outlet: Outlet): string | undefined {
    for (const [peer, name] of this.#names) if (peer === outlet) return name;
    return undefined;
  }

  /** Whether the bus with this name is a peer. */
  knows(name: string): boolean {
    return this.#peerNamed(name) !== undefined;
  }

  /** A consumer that nobody knows of until the one comes whose successor it is, or until `show`. */
  addSuccessor(consumer: Consumer, isLocal: boolean): void {
    const token = `${consumer.address} ${randomUUID()}`;
    const { receivers, passOn } = this.#parts;
    const incoming = new IncomingHandOff({
      token,
      consumer,
      isLocal,
      receivers,
      nameOf: (outlet) => this.#nameOf(outlet),
      passOn,
      onOpen: () => this.#incoming.delete(token),
    });
    this.#incoming.set(token, incoming);
  }

  /** Those of these consumers that are successors still. */
  successorsAmong(consumers: ReadonlySet<Consumer>): Successor[] {
    return this.#incomingOf(consumers).map(({ successor }) => successor);
  }

  #incomingOf(consumers: ReadonlySet<Consumer>): IncomingHandOff[] {
    return [...this.#incoming.values()].filter((each) => consumers.has(each.consumer));
  }

  /** The consumers whose successors these are come from the bus with this name; when it is gone they will not. */
  expect(consumers: ReadonlySet<Consumer>, from: string): void {
    const isThere = this.#peerNamed(from) !== undefined;
    for (const each of this.#incomingOf(consumers)) each.expect(isThere ? from : undefined);
  }

  /** Resolves when nothing of these comes from an old home any more. */
  async arrived(consumers: ReadonlySet<Consumer>): Promise<void> {
    await Promise.all(this.#incomingOf(consumers).map(({ opened }) => opened));
  }

  /**
   * The consumer goes to its successor at the bus with this name; what it holds goes there first. False when
   * that bus is no peer: then nothing has happened.
   */
  handOff(consumer: Consumer, isLocal: boolean, { to, token }: HandOffRoute): boolean {
    const peer = this.#peerNamed(to);
    if (peer === undefined) return false;
    const outgoing: OutgoingHandOff = new OutgoingHandOff({
      token,
      consumer,
      isLocal,
      to: { peer, name: to },
      ownName: this.name,
      ...this.#parts,
      onEnded: () => this.#outgoing.delete(token),
    });
    this.#outgoing.set(token, outgoing);
    outgoing.begin();
    return true;
  }

  /** A successor of nobody at the bus with this name is a consumer like any. */
  show(to: string, token: string): void {
    this.#peerNamed(to)?.note({ type: 'ended', token });
  }

  /** Of nobody, where none is on his way. */
  successorClosed(consumer: Consumer): void {
    for (const [token, each] of this.#incoming) {
      if (each.consumer !== consumer) continue;
      if (each.isExpected) each.consumerClosed();
      else this.#incoming.delete(token);
    }
  }

  /** As `Receivers.catchUp`. */
  catchUp(): Promise<void> {
    return this.#parts.receivers.catchUp();
  }

  /** Whether it came through a stream, and is taken care of. */
  takeForwarded(delivery: Delivery): boolean {
    const incoming = this.#incoming.size === 0 ? undefined : this.#incoming.get(delivery.address);
    incoming?.takeForwarded(delivery);
    return incoming !== undefined;
  }

  hear(peer: Peer, note: HandOffNote): void {
    switch (note.type) {
      case 'named':
        this.#names.set(peer, note.name);
        for (const [token, { to }] of this.#moves) if (to === note.name) this.#plan(token);
        break;
      case 'moved':
        this.#moved(peer, note);
        break;
      case 'switched':
        this.#switched(peer, note);
        break;
      case 'included':
        this.#moves.delete(note.token);
        this.#parts.receivers.setPeerWith(note.token, peer, note.address, note.consumers);
        break;
      case 'passed':
        this.#incoming.get(note.token)?.pass(note.by);
        break;
      case 'ended':
        this.#incoming.get(note.token)?.end();
        break;
    }
  }

  /** The peer counts it no more, but gets its messages until we have switched. */
  #moved(
    from: Peer,
    { token, address, consumers, to }: Extract<HandOffNote, { type: 'moved' }>,
  ): void {
    const { receivers } = this.#parts;
    receivers.addExtra(token, from, address);
    receivers.setPeer(from, address, consumers);
    this.#moves.set(token, { address, from, to });
    if (to === this.name || this.#peerNamed(to) !== undefined) this.#plan(token);
  }

  /** Behind what was sent to the address in this turn: its receivers are chosen already. */
  #plan(token: string): void {
    const move = this.#moves.get(token);
    if (move !== undefined) this.#parts.queue.again(move.address, () => this.#switch(token));
  }

  #switch(token: string): void {
    const move = this.#moves.get(token);
    const peer = move === undefined ? undefined : this.#peerNamed(move.to);
    if (move === undefined || (peer === undefined && move.to !== this.name)) return;
    const { address, from } = move;
    const { receivers } = this.#parts;
    this.#moves.delete(token);
    const note = { type: 'switched', token, address, by: this.name } as const;
    from.note(note);
    if (peer === undefined) {
      this.#incoming.get(token)?.enter(undefined, this.name);
      receivers.endExtra(token);
    } else {
      receivers.addExtra(token, peer, address);
      peer.note(note);
    }
  }

  /** Told to both homes; the new one counts itself from now on. */
  #switched(peer: Peer, { token, address, by }: Extract<HandOffNote, { type: 'switched' }>): void {
    const outgoing = this.#outgoing.get(token);
    if (outgoing !== undefined) {
      outgoing.left(peer, by);
      return;
    }
    this.#incoming.get(token)?.enter(peer, by);
    const consumers = this.#parts.receivers.countFor(peer, address);
    peer.note({ type: 'included', token, address, consumers });
  }
}
