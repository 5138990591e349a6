// Versions that wrap: the clock has 31 bits, and comparisons of versions flip after a quarter and a half of them. The
// clock of this process's memory is set forward, to what takes hours of commits.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  atomically,
  atomicallyWhen,
  check,
  free,
  type TMap,
  type TVar,
  tcounter,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
  tvar,
} from '../../src/stm/public.js';
import { threadState } from '../../src/stm/tvar.js';
import { deadlineMs, openPool } from '../pool/calls/ways.js';
import { random } from '../support/index.js';
import { sharingWays } from './sharing.js';
import { clock, lockOf, Other, passCommits, passUntil, versionsPerCommit } from './words.js';

/** All versions, and what is between two at which a comparison flips. */
const [allVersions, quarter] = [2 ** 32, 2 ** 30];
const allCommits = allVersions / versionsPerCommit;
const commitsBefore = 1000;

/** Versions at which one of the comparisons flips, from an object or a snapshot of version 0 on. */
const borders = [quarter, 2 * quarter, 3 * quarter, allVersions];

function passUntilBefore(border: number): void {
  passUntil(border - commitsBefore * versionsPerCommit);
}

/** Fails unless the clock has come from before a border to behind it. */
function assertIsBehind(border: number): void {
  const behind = (clock() - border) | 0;
  assert.ok(behind > 0 && behind < quarter / 4, `${clock()} is not behind ${border}`);
}

for (const border of borders) {
  for (const way of sharingWays) {
    test(`transactions and waits of workers go on behind version ${border}; ${way.name}`, async (t) => {
      const pool = openPool(t, { size: 3 }, way);
      const cells = Array.from({ length: 4 }, () => tvar(0));
      const [turn, answer] = [tvar(0), tvar(0)];
      const [rounds, turns] = [600, 150];
      await pool.runOnEach((all: typeof cells) => all.map((cell) => cell.peek()), cells);
      passUntilBefore(border);
      const add = () => {
        for (let round = 0; round < rounds; round += 1) {
          atomically(() => {
            const value = cells[0]?.get() ?? 0;
            for (const cell of cells) {
              if (cell.get() !== value) throw new Error(`torn: ${cell.get()} beside ${value}`);
              cell.set(value + 1);
            }
          });
        }
      };
      const serve = async (timeoutMs: number) => {
        for (let round = 1; round <= turns; round += 1) {
          const next = () => {
            check(turn.get() === round);
            answer.set(round);
          };
          await atomicallyWhen(next, { timeoutMs });
        }
      };
      const runs = [pool.run(add), pool.run(add), pool.run(serve, deadlineMs)];
      for (let round = 1; round <= turns; round += 1) {
        atomically(() => turn.set(round));
        await atomicallyWhen(() => check(answer.get() === round), { timeoutMs: deadlineMs });
      }
      await Promise.all(runs);
      for (const cell of cells) assert.equal(cell.peek(), 2 * rounds);
      assertIsBehind(border);
    });
  }

  test(`collections are as plain ones before and behind version ${border}`, (t) => {
    const { integer } = random(t);
    passUntilBefore(border);
    const [sorted, map, list] = [
      tsortedMap<number, string>(),
      tmap<number, string>(),
      tlist<number>(),
    ];
    const [queue, counter] = [tqueue<number>(), tcounter()];
    const [model, waiting] = [new Map<number, string>(), [] as number[]];
    let sum = 0;
    for (let round = 0; round < 1500; round += 1) {
      const key = integer(0, 120);
      if (integer(0, 3) > 0) {
        const value = `${round} `.repeat(integer(1, 40)); // in the leaf, or in a variable of its own
        atomically(() => {
          for (const each of [sorted, map]) each.set(key, value);
          list.add(key);
        });
        model.set(key, value);
      } else {
        const was = model.delete(key);
        const found = [sorted, map, list].map((each) => each.delete(key));
        assert.deepEqual(found, [was, was, was]);
      }
      if (integer(0, 2) === 0) waiting.push(round);
      if (waiting.at(-1) === round) queue.put(round);
      else if (waiting.length > 0) assert.equal(queue.take(), waiting.shift());
      counter.add(round);
      sum += round;
      if (round % 50 === 0)
        assert.equal(
          atomically(() => sorted.size),
          model.size,
        );
    }
    const wanted = [...model].sort(([left], [right]) => left - right);
    assert.deepEqual(sorted.entries(), wanted);
    assert.deepEqual(
      [...map].sort(([left], [right]) => left - right),
      wanted,
    );
    assert.deepEqual(
      list.keys(),
      wanted.map(([key]) => key),
    );
    assert.equal(queue.size, waiting.length);
    assert.equal(counter.value, sum);
    assertIsBehind(border);
  });
}

/** Commits after which something is found again. */
const ages = [
  2 ** 28,
  2 ** 29 - 1,
  2 ** 29,
  2 ** 29 + 1,
  2 ** 30 - 1,
  2 ** 30,
  2 ** 30 + 1,
  3 * 2 ** 29,
  allCommits - 1,
  allCommits,
  allCommits + 1,
];

/** A variable and collections with one content each. */
function makeThings() {
  const things = {
    variable: tvar<{ readonly text: string } | number>({ text: 'old' }),
    sorted: tsortedMap<number, number>(),
    map: tmap<number, string>(),
    list: tlist<number>(),
    queue: tqueue<number>({ capacity: 60 }),
    counter: tcounter(),
  };
  const { sorted, map, list, queue, counter } = things;
  for (let key = 0; key < 50; key += 1) {
    sorted.set(key, key);
    map.set(key, 'large '.repeat(key));
    list.add(key);
    queue.put(key);
    counter.add(key);
  }
  return things;
}

type Things = ReturnType<typeof makeThings>;

/** Reads and changes all; returns what was found. */
function use({ variable, sorted, map, list, queue, counter }: Things, round: number): unknown[] {
  const found = atomically(() => {
    const found: unknown[] = [
      variable.get(),
      sorted.size,
      map.size,
      list.keys().length,
      queue.take(),
    ];
    variable.set({ text: `set in round ${round}` });
    sorted.set(round % 50, round);
    map.set(round % 50, 'large '.repeat(round % 50));
    queue.put(round);
    counter.add(1);
    return found;
  });
  list.delete(round % 50);
  list.add(round % 50);
  return found;
}

for (const way of sharingWays) {
  test(`variables and collections that are ancient are read and changed; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const things = makeThings();
    const untouched: Things[] = [];
    for (let each = 0; each < ages.length; each += 1) untouched.push(makeThings());
    let text: unknown = { text: 'old' };
    const items = Array.from({ length: 50 }, (_, at) => at);
    let round = 1000;
    const assertFound = (found: readonly unknown[]) => {
      assert.deepEqual(found, [text, 50, 50, 50, items.shift()], `round ${round}`);
      items.push(round);
      text = { text: `set in round ${round}` };
      assert.deepEqual(things.variable.peek(), text);
      assert.deepEqual(
        things.list.keys(),
        Array.from({ length: 50 }, (_, at) => at),
      );
      round += 1;
    };
    // All threads make a transaction in each quarter: they forget the versions that come again.
    const pass = async (age: number) => {
      for (let left = age; left > 0; left -= 2 ** 29) {
        passCommits(Math.min(left, 2 ** 29));
        things.queue.peek();
        await pool.run(({ queue }: Things) => queue.peek(), things);
      }
    };
    for (const age of ages) {
      assertFound(use(things, round));
      assertFound(await pool.run(use, things, round));
      await pass(age);
      assertFound(await pool.run(use, things, round));
      await pass(age);
      assertFound(use(things, round));
      const other = untouched.pop();
      assert.ok(other);
      assert.deepEqual(use(other, 0), [{ text: 'old' }, 50, 50, 50, 0], `age ${age}`);
      assert.equal(things.counter.value, (49 * 50) / 2 + (round - 1000));
    }
  });

  test(`a sleeper wakes however many commits it slept; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    // But for the one commit, once in a wrap, that has the very version of the sleeper's snapshot.
    for (const age of ages.filter((each) => each !== allCommits - 1)) {
      const [flag, begun] = [tvar(0), tvar(0)];
      const sleep = async (given: TVar<number>, starts: TVar<number>, timeoutMs: number) => {
        let runs = 0;
        atomically(() => starts.set(1));
        await atomicallyWhen(
          () => {
            runs += 1;
            check(given.get() === 1);
          },
          { timeoutMs },
        );
        return runs;
      };
      const there = pool.run(sleep, flag, begun, deadlineMs);
      await atomicallyWhen(() => check(begun.get() === 1), { timeoutMs: deadlineMs });
      const here = sleep(flag, begun, deadlineMs);
      passCommits(age);
      atomically(() => flag.set(1));
      const runs = await Promise.all([here, there]);
      assert.ok(
        runs.every((count) => count <= 3),
        `${runs} after ${age}`,
      );
    }
  });
}

test('a value that was read long ago is not taken for one of the same version now', () => {
  const [text, object, inner] = [tvar('old'), tvar<unknown>({ old: true }), tvar(tvar('old'))];
  const [map, witness] = [tmap<number, string>(), tvar(0)];
  map.set(1, 'old '.repeat(100));
  const change = (what: string) => {
    const other = tvar(what);
    atomically(() => {
      text.set(what);
      object.set({ [what]: true });
      inner.set(other);
      map.set(1, `${what} `.repeat(100));
    });
  };
  const seen = () => [text.peek(), object.peek(), inner.peek().peek(), map.get(1)];
  change('old');
  assert.deepEqual(seen(), ['old', { old: true }, 'old', 'old '.repeat(100)]);
  const version = lockOf(text);
  for (let quarters = 0; quarters < 3; quarters += 1) {
    passCommits(quarter / versionsPerCommit);
    witness.peek(); // this thread goes on, without these variables
  }
  passUntil(version - versionsPerCommit);
  change('new');
  assert.equal(lockOf(text), version);
  assert.deepEqual(seen(), ['new', { new: true }, 'new', 'new '.repeat(100)]);
});

test('a transaction that is older than a quarter of all versions does not commit', () => {
  const other = new Other();
  for (const age of [2 ** 29, 2 ** 30, 2 ** 30 + 10, 3 * 2 ** 29 - 1]) {
    const [read, written] = [tvar(1), tvar(0)];
    let attempts = 0;
    atomically(() => {
      attempts += 1;
      const found = read.get();
      if (attempts === 1) {
        passCommits(age);
        other.set([read, 5]);
      }
      written.set(found);
    });
    assert.deepEqual([attempts, written.peek()], [2, 5], `age ${age}`);
  }
  other.close();
});

test('a participant that rests for half of all epochs frees its memory, and goes on', () => {
  const { words, at } = threadState().space;
  const variable = tvar('text 0');
  const map: TMap<number, string> = tmap();
  const work = () => {
    for (let round = 0; round < 500; round += 1) {
      atomically(() => variable.set(`text ${round}`));
      map.set(round % 7, 'large '.repeat(20 + round));
      free(tvar(round));
    }
    assert.equal(variable.peek(), 'text 499');
  };
  work();
  for (const epochs of [2 ** 29, 2 ** 30 - 1, 2 ** 30, 3 * 2 ** 29, 2 ** 31 - 1, 2 ** 31]) {
    Atomics.add(words, at.epoch, (2 * epochs) | 0);
    work();
  }
});
