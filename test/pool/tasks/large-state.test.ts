// A call whose captured state is large and the same as before: a warning, once, with the variable's name.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { pmap } from '../../../src/public.js';
import { warningsWith } from '../../support/index.js';
import { openPool } from '../calls/ways.js';

const warningsOf = (t: TestContext, body: () => Promise<void>): Promise<string[]> =>
  warningsWith(t, 'LARGE_CAPTURE', body);

const words = (count: number): string[] => Array.from({ length: count }, (_, at) => `word ${at}`);

test('one warning for a function that sends the same large state again', async (t) => {
  const pool = openPool(t, { size: 1 });
  const table = words(20_000);
  const small = words(10);
  const told = await warningsOf(t, async () => {
    for (let call = 0; call < 4; call += 1) {
      await pool.run(function lookUp() {
        return [table.length, small.length];
      });
    }
  });
  assert.equal(told.length, 1);
  assert.match(
    told[0] ?? '',
    /the function lookUp \(large-state\.test\.[jt]s:\d+:\d+\) sends \d+ KiB .*the variable table.*perWorker/,
  );
});

test('none for a small state, one that changes, or one call', async (t) => {
  const pool = openPool(t, { size: 1 });
  const small = words(100);
  const changing = words(20_000);
  const once = words(20_001);
  const told = await warningsOf(t, async () => {
    for (let call = 0; call < 4; call += 1) {
      changing[0] = `call ${call}`;
      await pool.run(() => small.length);
      await pool.run(() => changing.length);
    }
    await pool.run(() => once.length);
    await pmap(words(100), (word) => once.length + word.length, { pool, chunk: 10 });
  });
  assert.deepEqual(told, []);
});

/** A closure and what it captured, all made anew for each call: they differ by identity alone. */
const closuresOver: Readonly<Record<string, (table: readonly string[]) => () => unknown>> = {
  'a helper function': (table) => {
    const helper = () => table.length;
    return () => helper();
  },
  'a method': (table) => {
    const holder = {
      table,
      count() {
        return this.table.length;
      },
    };
    return () => holder.count();
  },
  'a getter': (table) => {
    const holder = {
      get count() {
        return table.length;
      },
    };
    return () => holder.count;
  },
  'an instance of a local class': (table) => {
    class Table {
      words = table;
      count() {
        return this.words.length;
      }
    }
    const instance = new Table();
    return () => instance.count();
  },
  'a static of a local class': (table) => {
    class Table {
      static words = table;
      readonly words = Table.words;
    }
    return () => Table.words.length;
  },
  'a bound function': (table) => {
    const bound = ((list: readonly string[]) => list.length).bind(undefined, table);
    return () => bound();
  },
  'a symbol': (table) => {
    const key = Symbol('words');
    const holder = { [key]: table };
    return () => holder[key]?.length;
  },
};

test('a closure and helpers that are new for each call do not hide what is the same', async (t) => {
  const pool = openPool(t, { size: 1 });
  const table = words(20_000);
  for (const [name, close] of Object.entries(closuresOver)) {
    const runOnce = async (): Promise<void> => {
      assert.equal(await pool.run(close(table)), 20_000, name);
    };
    const early = await warningsOf(t, async () => {
      for (let call = 0; call < 3; call += 1) {
        table[0] = `${name} ${call}`;
        await runOnce();
      }
    });
    assert.deepEqual(early, [], `${name}: it changed`);
    assert.equal((await warningsOf(t, runOnce)).length, 1, `${name}: the same`);
  }
});

class Rows {
  static sends = 0;
  static large = words(20_001);
  count = 1;
  [Symbol.for('manycore.send')](): string[] {
    Rows.sends += 1;
    return Rows.large;
  }
  static [Symbol.for('manycore.receive')](): Rows {
    return new Rows();
  }
}

test('a value with manycore.send is called once in each call', async (t) => {
  const pool = openPool(t, { size: 1 });
  const rows = new Rows();
  const read = (): number => rows.count;
  const readBoth = ({ each }: { each: Rows }): boolean => each === rows;
  const sends: number[] = [];
  const messages = await warningsOf(t, async () => {
    for (let call = 0; call < 6; call += 1) {
      Rows.sends = 0;
      if (call < 3) assert.equal(await pool.run(read), 1);
      else assert.equal(await pool.run(readBoth, { each: rows }), true);
      sends.push(Rows.sends);
    }
  });
  assert.deepEqual(sends, [1, 1, 1, 1, 1, 1]);
  assert.equal(messages.length, 2);
});
