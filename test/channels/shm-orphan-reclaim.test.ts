// Members of one arena that send each other blocks, drop them, come and get killed, in any order: no member
// ever sees memory that was freed, and in the end all of it is free. The members are those of a model
// (shm-members-model.ts), so that a seed decides the order of everything. MANYCORE_ROUNDS sets how many orders.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BlockTable, countAll, ShmBlocks } from '../../src/channels/shm/blocks.js';
import { MemberRefTransfer, OrphanReclaim } from '../../src/channels/shm/orphan-reclaim.js';
import type { RefTransferStep } from '../../src/channels/types.js';
import { type Random, random } from '../support/index.js';
import {
  type Loop,
  Memory,
  memberOwners,
  membersAt,
  modelArena,
  World,
} from './shm-members-model.js';

test('no member sees freed memory, and nothing stays, for any order of kills', (t) => {
  const chance = random(t);
  let retired = 0;
  const rounds = Number(process.env['MANYCORE_ROUNDS'] ?? 5000);
  for (let round = 0; round < rounds; round += 1) {
    const members = chance.integer(3, 6);
    const world = new World(chance, members);
    for (let at = 0; at < members; at += 1) world.join();
    for (let at = 0; at < 200; at += 1) {
      if (chance.integer(0, 2) === 0 || !world.step()) world.begin();
      world.check();
    }
    world.settle();
    for (const loop of world.alive) while (loop.held.length > 0) loop.drop(0);
    world.settle();
    assert.deepEqual([...world.memory.inUse], [], 'all is free');
    retired += world.memory.retired;
    for (const loop of world.alive.slice(1)) world.kill(loop);
    world.settle();
    assert.equal(world.memory.freeMembers.length, members, 'and so are the numbers');
  }
  assert.ok(retired > rounds, `${retired} members were killed: too few for this test`);
});

test('numbers are free again while members end all the time, some before their steps', (t) => {
  const chance = random(t);
  const members = 8;
  // Some 15 are in use at a time. Where each waited for all that depend on it, these did not suffice.
  const world = new World(chance, 30);
  for (let at = 0; at < members; at += 1) world.join();
  for (let kills = 0; kills < 500; kills += 1) {
    for (let at = 0; at < 5; at += 1) world.begin(true);
    for (let at = 0; at < 200; at += 1) if (!world.step()) break; // fewer than the steps for one member take
    world.check();
    for (const loop of world.alive) while (loop.held.length > 1) loop.drop(0);
    world.kill(chance.pick(world.alive.slice(1)));
    world.join();
    assert.equal(world.alive.length, members + 1, `a number for member ${kills + members + 1}`);
    const [first] = world.workers.keys();
    if (first !== undefined && world.workers.size > 1) world.endWorkers(first);
  }
});

/** Returns members of which the first made a block, each passed it on to the next, and the last alone holds it. */
function passedOn(chance: Random, members: number): { world: World; way: readonly Loop[] } {
  const world = new World(chance, members);
  for (let at = 0; at < members; at += 1) world.join();
  world.settle();
  const [, ...way] = world.loops;
  way[0]?.make();
  for (const [at, from] of way.entries()) {
    const [held] = from.held;
    const to = way[at + 1];
    assert.ok(held);
    if (to === undefined) break;
    from.send(held.block, to);
    world.settle();
    from.drop(0);
  }
  return { world, way };
}

test('workers of a member keep a block whose new holder could not be announced any more', (t) => {
  const { world, way } = passedOn(random(t), 4);
  const [owner, , between, last] = way;
  assert.ok(owner && between && last);
  world.kill(between);
  world.endWorkers(between.name);
  const full = [last, owner] as const;
  while (world.step({ blocked: owner, full }));
  while (world.step({ full })); // all but the owner have done their steps with `last`
  world.kill(last);
  while (world.step());
  world.check(); // its workers go on
  world.endWorkers(last.name);
  world.settle();
  assert.deepEqual([...world.memory.inUse], []);
});

test('a new holder is announced through two dead members before the lender gives a block back', (t) => {
  const { world, way } = passedOn(random(t), 5);
  const [owner, , first, second, last] = way;
  assert.ok(owner && first && second && last);
  world.kill(first);
  world.endWorkers(first.name);
  while (world.step({ blocked: second })); // all others have done their first step
  world.kill(second);
  world.endWorkers(second.name);
  while (world.step({ full: [last, owner] })); // the announcement to the owner is on its way
  world.check();
  world.settle();
  assert.equal(last.held.length, 1);
  while (last.held.length > 0) last.drop(0);
  world.settle();
  assert.deepEqual([...world.memory.inUse], []);
});

test('workers keep a block whose way through two dead members was not announced to its owner', (t) => {
  const { world, way } = passedOn(random(t), 4);
  const [owner, first, second, last] = way;
  assert.ok(owner && first && second && last);
  world.kill(first);
  world.endWorkers(first.name);
  while (world.step({ blocked: second }));
  world.kill(second);
  world.endWorkers(second.name);
  while (world.step({ full: [last, owner] })); // all but the owner have its steps for the second
  world.kill(last);
  while (world.step());
  world.check(); // its workers go on
  world.endWorkers(last.name);
  world.settle();
  assert.deepEqual([...world.memory.inUse], []);
});

test('a member that ends behind one whose ring is unread is reclaimed once that is read', (t) => {
  const world = new World(random(t), 4);
  for (let at = 0; at < 4; at += 1) world.join();
  world.settle();
  const [, reader, first, second] = world.loops;
  assert.ok(reader && first && second);
  for (const each of [first, second]) {
    world.kill(each);
    world.endWorkers(each.name);
  }
  while (world.step({ unread: [reader, first] }));
  assert.equal(world.memory.retired, 0);
  world.settle();
  assert.equal(world.memory.retired, 2);
});

test('an announcement waits until its channel is in use', () => {
  const table = new BlockTable(modelArena(new Memory(2), 0), 0, () => {});
  const reclaim = new OrphanReclaim(table, { id: 0, owner: 0 }, () => {});
  const late = { id: 2, owner: membersAt + memberOwners };
  reclaim.ended({ id: 1, owner: membersAt }, [{ id: 0, owner: 0 }, late]);
  const transfer = new MemberRefTransfer(late, new ShmBlocks(table, countAll), reclaim);
  const steps: unknown[] = [];
  const onStep = (member: number, step: RefTransferStep): void => void steps.push([member, step]);
  transfer.handle({ onInherit: () => {}, onStep });
  assert.deepEqual(steps, [[1, 'transferred']]);
});
