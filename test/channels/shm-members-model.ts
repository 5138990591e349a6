// A model of members of one arena: channels, arena and garbage collector are here, and a random order decides what
// happens next. Not here: the tests (shm-orphan-reclaim.test.ts).

import assert from 'node:assert/strict';
import { BlockTable, countAll, memberOf, ShmBlocks } from '../../src/channels/shm/blocks.js';
import {
  type MemberName,
  MemberRefTransfer,
  OrphanReclaim,
} from '../../src/channels/shm/orphan-reclaim.js';
import type { Block, RefTransferStep } from '../../src/channels/types.js';
import type { NativeArena } from '../../src/native.js';
import type { Random } from '../support/index.js';

export const membersAt = 2 ** 17;
export const memberOwners = 2 ** 8;
const sizeBytes = 64;

const nameOf = ({ owner, offset }: Block): string => `${owner}:${offset}`;

/** The blocks of the arena that are in use, and the numbers of members. */
export class Memory {
  readonly inUse = new Set<string>();
  readonly freeMembers: number[];
  retired = 0;

  constructor(members: number) {
    this.freeMembers = Array.from({ length: members }, (_, at) => membersAt + at * memberOwners);
  }

  retireMember(first: number): void {
    for (const name of this.inUse) {
      if (memberOf(Number(name.split(':')[0])) === first) this.inUse.delete(name);
    }
    assert.ok(!this.freeMembers.includes(first), 'a number is free once');
    this.freeMembers.push(first);
    this.retired += 1;
  }
}

/** The native code that a table uses; a view is garbage when a test decides so. */
export function modelArena(
  memory: Memory,
  owner: number,
): NativeArena & { collect(key: number): void } {
  let nextOffset = 0;
  let collected: number[] = [];
  const unused = (): never => assert.fail('not for these tests');
  return {
    fd: unused,
    takeOwner: unused,
    retireOwner: unused,
    takeMember: unused,
    allocate: unused,
    retireMember: (first) => memory.retireMember(first),
    unmapMember() {},
    place() {
      const block = { owner, offset: nextOffset, sizeBytes };
      nextOffset += 65536;
      memory.inUse.add(nameOf(block));
      return block.offset;
    },
    free(offset) {
      assert.ok(memory.inUse.delete(nameOf({ owner, offset, sizeBytes })), 'freed once');
    },
    view: () => new ArrayBuffer(sizeBytes),
    collect: (key) => collected.push(key),
    takeCollected() {
      const keys = collected;
      collected = [];
      return keys;
    },
    usedCount: 0,
    release() {},
  };
}

type Frame =
  | { readonly type: 'message'; readonly block: Block }
  | { readonly type: 'release' | 'inherit'; readonly block: Block; readonly count: number }
  | { readonly type: RefTransferStep; readonly member: number };

/** A notice from the supervisor. */
type Notice =
  | { readonly type: 'offered'; readonly from: Loop }
  | { readonly type: 'left'; readonly member: MemberName; readonly survivors: MemberName[] }
  | { readonly type: 'workersEnded'; readonly member: MemberName };

/** End of a channel. */
interface Line {
  readonly blocks: ShmBlocks;
  readonly refTransfer: MemberRefTransfer;
  readonly inbox: Frame[];
  /** Frames that wait for room in the ring, and are lost with their sender. */
  readonly outbox: Frame[];
  readonly peerInbox: Frame[];
  isPeerGone: boolean;
}

interface Held {
  readonly block: Block;
  readonly isView: boolean;
}

export class Loop {
  readonly name: MemberName;
  readonly table: BlockTable;
  readonly reclaim: OrphanReclaim;
  readonly native: ReturnType<typeof modelArena>;
  readonly lines = new Map<number, Line>();
  readonly notices: Notice[] = [];
  /** Blocks that are held here: own ones that were made, and those of which a view is reachable. */
  readonly held: Held[] = [];
  isAlive = true;

  constructor(memory: Memory, name: MemberName) {
    this.name = name;
    this.native = modelArena(memory, name.owner);
    this.table = new BlockTable(this.native, name.owner, () => {});
    this.reclaim = new OrphanReclaim(this.table, name, () => {});
  }

  /** Opens the end of a channel to `peer`; the other end may not exist yet. */
  link(peer: Loop): void {
    if (this.lines.has(peer.name.id)) return;
    const blocks = new ShmBlocks(this.table, countAll);
    const refTransfer = new MemberRefTransfer(peer.name, blocks, this.reclaim);
    const outbox: Frame[] = [];
    const send = (frame: Frame): void => void outbox.push(frame);
    blocks.handleUnused((block, count) => send({ type: 'release', block, count }));
    refTransfer.handle({
      onInherit: (block, count) => send({ type: 'inherit', block, count }),
      onStep: (member, type) => send({ type, member }),
    });
    this.lines.set(peer.name.id, {
      blocks,
      refTransfer,
      inbox: this.inboxOf(peer),
      outbox,
      peerInbox: peer.inboxOf(this),
      isPeerGone: false,
    });
  }

  readonly #inboxes = new Map<number, Frame[]>();

  inboxOf(peer: Loop): Frame[] {
    const inbox = this.#inboxes.get(peer.name.id) ?? [];
    this.#inboxes.set(peer.name.id, inbox);
    return inbox;
  }

  make(): void {
    const block = this.table.place(new Uint8Array(sizeBytes));
    assert.ok(block);
    this.held.push({ block, isView: false });
  }

  /** False for a channel that was read to its end: it takes nothing any more. */
  canSendTo(peer: number): boolean {
    return this.lines.get(peer)?.refTransfer.isReadToEnd === false;
  }

  send(block: Block, peer: Loop): void {
    this.lines.get(peer.name.id)?.blocks.lend(block);
    this.lines.get(peer.name.id)?.outbox.push({ type: 'message', block });
  }

  read(line: Line): void {
    const frame = line.inbox.shift();
    if (frame === undefined) return;
    switch (frame.type) {
      case 'message':
        line.blocks.borrow(frame.block, false);
        this.held.push({ block: frame.block, isView: true });
        break;
      case 'release':
        line.blocks.takeBack(frame.block, frame.count);
        break;
      case 'inherit':
        line.refTransfer.inherit(frame.block, frame.count);
        break;
      default:
        line.refTransfer.receiveStep(frame.member, frame.type);
        break;
    }
  }

  drop(at: number): void {
    const [held] = this.held.splice(at, 1);
    if (held === undefined) return;
    const { block, isView } = held;
    if (!isView) {
      this.table.release(block);
      return;
    }
    this.native.collect(block.owner * 2 ** 35 + block.offset);
    this.table.onCollected();
  }
}

function flush({ outbox, peerInbox }: Line): void {
  peerInbox.push(...outbox.splice(0));
}

/** Parts of the world that stand still for a while. */
interface Hold {
  readonly blocked?: Loop;
  /** The ring from the first to the second. */
  readonly full?: readonly [Loop, Loop];
  /** The first does not read the ring of the second to its end. */
  readonly unread?: readonly [Loop, Loop];
}

export class World {
  readonly memory: Memory;
  readonly loops: Loop[] = [];
  /** Blocks that workers still use, by the member of theirs that has ended. */
  readonly workers = new Map<MemberName, readonly Held[]>();
  readonly #chance: Random;
  #lastId = 0;

  /** `members` may be there at a time, besides the arena's owner. */
  constructor(chance: Random, members: number) {
    this.#chance = chance;
    this.memory = new Memory(members);
    this.loops.push(new Loop(this.memory, { id: 0, owner: 0 }));
  }

  get alive(): Loop[] {
    return this.loops.filter(({ isAlive }) => isAlive);
  }

  join(): void {
    const owner = this.memory.freeMembers.shift();
    if (owner === undefined) return;
    this.#lastId += 1;
    const made = new Loop(this.memory, { id: this.#lastId, owner });
    for (const other of this.alive) {
      made.link(other);
      other.notices.push({ type: 'offered', from: made });
    }
    this.loops.push(made);
  }

  kill(loop: Loop): void {
    loop.isAlive = false;
    this.workers.set(loop.name, loop.held.splice(0));
    const survivors = this.alive.map(({ name }) => name);
    for (const each of this.alive)
      each.notices.push({ type: 'left', member: loop.name, survivors });
  }

  endWorkers(member: MemberName): void {
    this.workers.delete(member);
    this.loops[0]?.notices.push({ type: 'workersEnded', member });
  }

  receive(loop: Loop): void {
    const notice = loop.notices.shift();
    if (notice?.type === 'offered') loop.link(notice.from);
    if (notice?.type === 'workersEnded') loop.reclaim.workersEnded(notice.member.id);
    if (notice?.type !== 'left') return;
    const line = loop.lines.get(notice.member.id);
    if (line !== undefined) line.isPeerGone = true;
    const hasWorkers = loop === this.loops[0];
    loop.reclaim.ended(notice.member, notice.survivors, { hasWorkers });
  }

  /** Does one of the things that can happen now; false: there are none before something new is begun. */
  step(held: Hold = {}): boolean {
    const acts: (() => void)[] = [];
    for (const loop of this.alive.filter((each) => each !== held.blocked)) {
      if (loop.notices.length > 0) acts.push(() => this.receive(loop));
      const isUnread = (peer: number): boolean =>
        loop === held.unread?.[0] && peer === held.unread[1].name.id;
      for (const [peer, line] of loop.lines) {
        const isFull = loop === held.full?.[0] && peer === held.full[1].name.id;
        if (line.outbox.length > 0 && !isFull) acts.push(() => flush(line));
        if (line.inbox.length > 0) acts.push(() => loop.read(line));
        else if (line.isPeerGone && !line.refTransfer.isReadToEnd && !isUnread(peer))
          acts.push(() => line.refTransfer.finishReading());
      }
    }
    if (acts.length === 0) return false;
    this.#chance.pick(acts)();
    return true;
  }

  /** `isStable`: no member comes or goes. */
  begin(isStable = false): void {
    const loop = this.#chance.pick(this.alive);
    const what = this.#chance.integer(isStable ? 2 : 0, 20);
    if (what === 0) this.join();
    else if (what === 1 && loop.name.id !== 0) {
      this.kill(loop);
      if (this.#chance.integer(0, 2) === 0) this.endWorkers(loop.name);
    } else if (what === 2 && !isStable)
      for (const each of this.workers.keys()) this.endWorkers(each);
    else if (what < 6) loop.make();
    else if (what < 12) loop.drop(this.#chance.integer(0, loop.held.length));
    else if (loop.held.length > 0) {
      const peers = this.loops.filter(({ name }) => loop.canSendTo(name.id));
      if (peers.length > 0) loop.send(this.#chance.pick(loop.held).block, this.#chance.pick(peers));
    }
  }

  check(): void {
    const held = [...this.alive.map((each) => each.held), ...this.workers.values()].flat();
    for (const { block } of held) assert.ok(this.memory.inUse.has(nameOf(block)), nameOf(block));
  }

  settle(): void {
    while (this.step()) this.check();
    if (this.workers.size === 0) {
      for (const { reclaim } of this.alive)
        assert.ok(reclaim.isComplete, 'no member is waited for');
      return;
    }
    for (const each of this.workers.keys()) this.endWorkers(each);
    this.settle();
  }
}
