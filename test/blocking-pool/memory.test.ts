// The pool in made-up memory: the counts, and that nothing in it is trusted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReadAt } from '../../src/blocking-pool/elf.js';
import { poolInMemory } from '../../src/blocking-pool/memory.js';
import { random } from '../support/index.js';

const symbols = {
  entry: 0,
  jobs: 0x100,
  lookups: 0x120,
  lookupsEntry: 0x140,
  exitEntry: 0x160,
  threads: 0x180,
  idleThreads: 0x184,
};
const moved = 0x1000;
/** List of the loop with the finished jobs. */
const doneList = 0x200;

/** A process with `sizeBytes` bytes of memory from `moved` on. */
class Memory {
  readonly bytes = Buffer.alloc(8192);
  onRead: (address: number) => void = () => {};

  readonly read: ReadAt = (address, lengthBytes) => {
    this.onRead(address);
    const at = address - moved;
    return at < 0 ? Buffer.alloc(0) : Buffer.from(this.bytes.subarray(at, at + lengthBytes));
  };

  setThreads(threads: number, idleThreads: number): void {
    this.bytes.writeUInt32LE(threads, symbols.threads);
    this.bytes.writeUInt32LE(idleThreads, symbols.idleThreads);
  }

  /** Makes a list of the entries at these places. */
  link(head: number, entries: readonly number[], areDone = false): void {
    const ring = [head, ...entries];
    for (const [at, entry] of ring.entries()) {
      const [next = head, previous = ring.at(-1) ?? head] = [ring[at + 1], ring[at - 1]];
      this.bytes.writeBigUInt64LE(BigInt(next + moved), entry);
      this.bytes.writeBigUInt64LE(BigInt(previous + moved), entry + 8);
      if (entry >= firstPlace) this.bytes.writeBigUInt64LE(areDone ? 0n : 1n, entry - 24);
    }
  }
}

function poolWith(jobs: readonly number[], lookups: readonly number[] = []): Memory {
  const memory = new Memory();
  memory.setThreads(4, 1);
  memory.link(symbols.jobs, jobs);
  memory.link(symbols.lookups, lookups);
  return memory;
}

const firstPlace = 0x400;
const places = (count: number): number[] =>
  Array.from({ length: count }, (_, at) => firstPlace + 64 * at);

test('jobs and lookups are counted, and the entries that stand for others are not', () => {
  const [first = 0, second = 0, third = 0, ...lookups] = places(6);
  const jobs = [first, symbols.lookupsEntry, second, third, symbols.exitEntry];
  assert.deepEqual(poolInMemory(poolWith(jobs, lookups).read, symbols, moved), {
    threads: 4,
    idleThreads: 1,
    waitingJobs: 6,
    waitingLookups: 3,
  });
});

test('a pool that was never used has no threads, and its lists are not read', () => {
  const { read } = new Memory();
  assert.equal(poolInMemory(read, symbols, moved)?.threads, 0);
});

test('impossible values are no pool', () => {
  const memory = poolWith([]);
  memory.setThreads(1025, 0);
  assert.equal(poolInMemory(memory.read, symbols, moved), undefined);
  assert.equal(
    poolInMemory(() => Buffer.alloc(0), symbols, moved),
    undefined,
  );
});

test('jobs that are taken while they are counted end the count, and those that are left are in it', () => {
  const jobs = places(100);
  const memory = poolWith(jobs);
  const done: number[] = [];
  // Before the fortieth from the end is read, threads have done all before it, and two after it.
  memory.onRead = (address) => {
    if (address - moved !== (jobs[60] ?? 0) - 24) return;
    done.push(...jobs.splice(0, 63));
    memory.link(symbols.jobs, jobs);
    memory.link(doneList, done, true);
  };
  assert.equal(poolInMemory(memory.read, symbols, moved)?.waitingJobs, 39);
  assert.equal(poolInMemory(memory.read, symbols, moved)?.waitingJobs, 37);
});

test('jobs are counted although another one is queued before every read', () => {
  const [first = 0, ...more] = places(120);
  const jobs = [first, ...more.splice(0, 49)];
  const memory = poolWith(jobs);
  memory.onRead = () => {
    jobs.push(...more.splice(0, 1));
    memory.link(symbols.jobs, jobs);
  };
  const { waitingJobs = -1 } = poolInMemory(memory.read, symbols, moved) ?? {};
  assert.ok(waitingJobs >= 50 && waitingJobs <= 120, String(waitingJobs));
});

test('a list that leads back into itself, and not to its head, is not followed for ever', () => {
  const jobs = places(5);
  const memory = poolWith(jobs);
  const [, second = 0, , , last = 0] = jobs;
  memory.bytes.writeBigUInt64LE(BigInt(last + moved), second + 8);
  memory.bytes.writeBigUInt64LE(BigInt(second + moved), last);
  const { waitingJobs = 0 } = poolInMemory(memory.read, symbols, moved) ?? {};
  assert.ok(waitingJobs <= 5, String(waitingJobs));
});

test('jobs that are taken and queued anew during the walk are counted once', (t) => {
  const { integer } = random(t);
  for (let round = 0; round < 200; round += 1) {
    const jobs = places(50);
    const memory = poolWith(jobs);
    // Between two reads threads take the first jobs, and the program queues them anew behind all others.
    memory.onRead = () => {
      jobs.push(...jobs.splice(0, integer(0, 4)));
      memory.link(symbols.jobs, jobs);
    };
    const { waitingJobs = -1 } = poolInMemory(memory.read, symbols, moved) ?? {};
    assert.ok(waitingJobs >= 0 && waitingJobs <= 50, String(waitingJobs));
  }
});

test('ten thousand jobs of a list without an end are counted', () => {
  // All memory is one entry after the other, whatever the address.
  const read: ReadAt = (address, lengthBytes) => {
    if (lengthBytes === 4) return Buffer.from([4, 0, 0, 0]);
    const bytes = Buffer.alloc(lengthBytes, 1);
    const entry = address + lengthBytes - 16;
    bytes.writeBigUInt64LE(BigInt(entry - 32), lengthBytes - 16);
    bytes.writeBigUInt64LE(BigInt(entry + 32), lengthBytes - 8);
    return bytes;
  };
  const { waitingJobs } = poolInMemory(read, { ...symbols, lookups: 2 ** 40 }, moved) ?? {};
  assert.equal(waitingJobs, 20_000); // in each of its two lists
});

test('memory with anything in it is read without an error', (t) => {
  const { integer, pick, bytes } = random(t);
  for (let round = 0; round < 5000; round += 1) {
    const memory = poolWith(places(integer(0, 8)), places(20).slice(integer(8, 20)));
    for (let change = integer(1, 6); change > 0; change -= 1) {
      const at =
        pick([symbols.jobs, symbols.threads, symbols.lookups, firstPlace - 24]) + integer(0, 300);
      pick([bytes(8), Buffer.alloc(8), Buffer.alloc(8, 0xff)]).copy(memory.bytes, at);
    }
    const found = poolInMemory(memory.read, symbols, moved);
    if (found === undefined) continue;
    assert.ok(found.threads <= 1024 && found.idleThreads <= found.threads);
    assert.ok(found.waitingJobs >= found.waitingLookups && found.waitingJobs <= 20_000);
  }
});
