// Hand-offs: a consumer moves from one loop's bus (the source) to its successor at another (the target) while
// others send to it. No message is lost or comes twice, and messages of one sender stay in order.
//
// The source holds what arrives. It then forwards that, and what still arrives, to the successor through one
// stream, and notifies its peers that the consumer has `moved`. Each peer sends to the successor from then on
// and notifies both buses that it has `switched`: the source after its last message there, the target before
// its first. The source passes that notice on in its stream; until then the successor sets aside what this
// peer sends straight to it. Nobody waits for anybody else: a blocked peer switches later. When all have
// switched, the source announces `ended`.
//
// An uplink has subscriptions of both buses for a while. The target catches up with it before the successor
// subscribes and after, and the source before it announces `ended`. So every message comes one way or the
// other, and the successor takes one that comes both ways once (publications.ts).
//
// Source and target may be one bus: then a consumer gives its messages and its place to the successor in one step,
// and no peer notices.
//
// A hand-off has a token: messages in its stream are addressed to it. Its two ends are outgoing-hand-off.ts
// and incoming-hand-off.ts; the third party, which sends, is here.
// Not here: the unit and its state, and the decision to move it (units/).

import { randomUUID } from 'node:crypto';
import type { Consumer } from '../delivery/consumer.js';
import type { Delivery, Waiter } from '../delivery/message.js';
import type { Receivers } from '../delivery/receivers.js';
import type { TurnQueue } from '../delivery/turn-queue.js';
import type { HandOffNote } from '../protocol.js';
import type { LocalTransport } from '../transports/local.js';
import type { Peer, RemoteTransport } from '../transports/transport.js';
import { IncomingHandOff, type Successor } from './incoming-hand-off.js';
import { type HandOffRoute, OutgoingHandOff } from './outgoing-hand-off.js';

/** The parts of a bus that hand-offs use. */
export interface HandOffsParts {
  readonly receivers: Receivers;
  readonly queue: TurnQueue;
  readonly local: LocalTransport;
}

/** A moved consumer of a peer, as one of its senders has it. */
interface Move {
  readonly address: string;
  readonly from: Peer;
  /** The name of the target bus. */
  readonly to: string;
}

export class HandOffs {
  /** The unique name of this bus. */
  readonly name = randomUUID();
  readonly #parts: HandOffsParts;
  readonly #names = new Map<Peer, string>();
  /** By token, as the next two. */
  readonly #outgoing = new Map<string, OutgoingHandOff>();
  readonly #incoming = new Map<string, IncomingHandOff>();
  /** Hand-offs by which consumers move to this loop. */
  readonly incoming: ReadonlyMap<string, unknown> = this.#incoming;
  readonly #moves = new Map<string, Move>();
  /** Requests that went to successors at other buses, and have no reply yet. */
  readonly #forwarded = new Set<Waiter>();
  readonly #whenLeft: (() => void)[] = [];

  constructor(parts: HandOffsParts) {
    this.#parts = parts;
  }

  peerAdded(peer: Peer): void {
    peer.note({ type: 'named', name: this.name });
    for (const each of this.#outgoing.values()) each.notify(peer);
  }

  peerEnded(peer: Peer): void {
    const name = this.#names.get(peer);
    this.#names.delete(peer);
    for (const [token, { from }] of this.#moves) if (from === peer) this.#moves.delete(token);
    for (const each of this.#outgoing.values()) each.peerEnded(peer, name);
    for (const each of this.#incoming.values()) each.peerEnded(peer, name);
  }

  /** Peers have room again. */
  drained(): void {
    for (const each of this.#outgoing.values()) each.flush();
  }

  /** Returns undelivered messages, because the bus is closed. */
  close(): Delivery[] {
    return [...this.#outgoing.values()].flatMap((each) => each.takeAll());
  }

  #peerNamed(name: string): Peer | undefined {
    for (const [peer, its] of this.#names) if (its === name) return peer;
    return undefined;
  }

  #nameOf(transport: RemoteTransport): string | undefined {
    for (const [peer, name] of this.#names) if (peer === transport) return name;
    return undefined;
  }

  /** True: the bus with this name is a peer, or this one. */
  isThere(name: string): boolean {
    return name === this.name || this.#peerNamed(name) !== undefined;
  }

  /** Adds a successor, which is not announced to peers before its consumer arrives, or before `activate`. */
  addSuccessor(consumer: Consumer, isLocal: boolean): void {
    const token = `${consumer.address} ${randomUUID()}`;
    const incoming = new IncomingHandOff({
      token,
      consumer,
      isLocal,
      ...this.#parts,
      nameOf: (transport) => this.#nameOf(transport),
      onOpen: () => this.#incoming.delete(token),
    });
    this.#incoming.set(token, incoming);
  }

  /** Returns those of the consumers that are still successors. */
  successorsAmong(consumers: ReadonlySet<Consumer>): Successor[] {
    return this.#incomingOf(consumers).map(({ successor }) => successor);
  }

  #incomingOf(consumers: ReadonlySet<Consumer>): IncomingHandOff[] {
    return [...this.#incoming.values()].filter((each) => consumers.has(each.consumer));
  }

  /** Sets the source bus of these successors; if it is gone, they become ordinary consumers. */
  expect(consumers: ReadonlySet<Consumer>, from: string): void {
    if (from === this.name) return; // they replace others in one step
    const isThere = this.#peerNamed(from) !== undefined;
    for (const each of this.#incomingOf(consumers)) each.expect(isThere ? from : undefined);
  }

  /** Resolves when no source forwards to any of these any more. */
  async arrived(consumers: ReadonlySet<Consumer>): Promise<void> {
    await Promise.all(this.#incomingOf(consumers).map(({ opened }) => opened));
  }

  /**
   * Hands off a consumer to its successor at the bus `to`; held messages are forwarded first. Returns false,
   * and does nothing, when that bus is no peer and not this one.
   */
  handOff(consumer: Consumer, isLocal: boolean, { to, token }: HandOffRoute): boolean {
    if (to === this.name) return this.#handOffHere(consumer, isLocal, token);
    const peer = this.#peerNamed(to);
    if (peer === undefined) return false;
    const outgoing: OutgoingHandOff = new OutgoingHandOff({
      token,
      consumer,
      isLocal,
      to: { peer, name: to },
      ownName: this.name,
      ...this.#parts,
      follow: (waiter) => this.#follow(waiter),
      onEnded: () => {
        this.#outgoing.delete(token);
        this.#checkLeft();
      },
    });
    this.#outgoing.set(token, outgoing);
    outgoing.begin();
    return true;
  }

  #follow(waiter: Waiter): Waiter {
    this.#forwarded.add(waiter);
    const over = (): void => {
      this.#forwarded.delete(waiter);
      this.#checkLeft();
    };
    return {
      settle: (outcome) => {
        waiter.settle(outcome);
        over();
      },
      whenGivenUp: (callback) =>
        waiter.whenGivenUp(() => {
          over();
          callback();
        }),
    };
  }

  /** Resolves when nothing goes through this bus to a successor any more, and what went there has its replies. */
  async left(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#whenLeft.push(resolve);
      this.#checkLeft();
    });
  }

  #checkLeft(): void {
    if (this.#outgoing.size > 0 || this.#forwarded.size > 0) return;
    for (const resolve of this.#whenLeft.splice(0)) resolve();
  }

  #handOffHere(consumer: Consumer, isLocal: boolean, token: string): boolean {
    const incoming = this.#incoming.get(token);
    if (incoming === undefined) {
      consumer.close(); // its successor was closed
      return true;
    }
    incoming.openHere(); // the address is never without a consumer
    this.#parts.receivers.leave(consumer, isLocal);
    const successor = incoming.consumer;
    consumer.divert((delivery) => {
      if (!successor.take(delivery)) this.#parts.local.passOn(delivery);
    });
    return true;
  }

  /** Makes a successor at the bus `to` that has no predecessor an ordinary consumer. */
  activate(to: string, token: string): void {
    if (to === this.name) {
      const incoming = this.#incoming.get(token);
      incoming?.openHere();
      if (incoming?.successor.isLocal === false) {
        this.#parts.receivers.announceToAll(incoming.consumer.address);
      }
      return;
    }
    this.#peerNamed(to)?.note({ type: 'ended', token });
  }

  /** The successor's consumer was closed: forgets it, unless a consumer is on its way to it. */
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

  /** Returns true when the message came through a stream; it is delivered then. */
  takeForwarded(delivery: Delivery): boolean {
    const incoming = this.#incoming.get(delivery.address);
    incoming?.takeForwarded(delivery);
    return incoming !== undefined;
  }

  receive(peer: Peer, note: HandOffNote): void {
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

  /** The peer has it in its count no more, but gets its messages until this bus has switched. */
  #moved(
    from: Peer,
    { token, address, consumers, to }: Extract<HandOffNote, { type: 'moved' }>,
  ): void {
    const { receivers } = this.#parts;
    receivers.addExtra(token, from, address, false);
    receivers.setPeer(from, address, consumers);
    this.#moves.set(token, { address, from, to });
    if (to === this.name || this.#peerNamed(to) !== undefined) this.#plan(token);
  }

  /** Queued after the messages sent to the address in this turn: their receivers are chosen already. */
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
      receivers.addExtra(token, peer, address, true);
      peer.note(note);
    }
  }

  /** Both buses get this notice; the target has the successor in its own count from now on. */
  #switched(peer: Peer, { token, address, by }: Extract<HandOffNote, { type: 'switched' }>): void {
    const outgoing = this.#outgoing.get(token);
    if (outgoing !== undefined) {
      outgoing.peerSwitched(peer, by);
      return;
    }
    this.#incoming.get(token)?.enter(peer, by);
    const consumers = this.#parts.receivers.countFor(peer, address);
    peer.note({ type: 'included', token, address, consumers });
  }
}
