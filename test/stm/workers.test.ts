// Variables that several processes and threads share: nothing is lost, nothing is seen by halves, sleepers wake.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { Pool, pmap } from '../../src/public.js';
import {
  atomically,
  atomicallyWhen,
  check,
  free,
  retry,
  type TVar,
  tvar,
} from '../../src/stm/public.js';
import { deadlineMs, openPool } from '../pool/calls/ways.js';
import { isFew, withDeadline } from '../support/index.js';
import { sharingWays } from './sharing.js';

/** How often both workers are killed. */
const kills = isFew ? 4 : 10;

for (const way of sharingWays) {
  test(`variables travel in captures, arguments, results and values; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const [captured, argument] = [tvar(1), tvar('a')];
    const holder = tvar<TVar<number>>(captured);
    const given = await pool.run(
      (text: TVar<string>, inner: TVar<TVar<number>>) =>
        atomically(() => {
          captured.update((value) => value + 1);
          text.set(`${text.get()}b`);
          inner.get().update((value) => value * 10);
          return { made: tvar({ from: 'worker' }), text };
        }),
      argument,
      holder,
    );
    assert.deepEqual([captured.peek(), argument.peek()], [20, 'ab']);
    assert.deepEqual(given.made.peek(), { from: 'worker' });
    assert.equal(given.text, argument);
  });

  test(`additions by several lose nothing, and no transaction sees half of one; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 3 }, way);
    const cells = Array.from({ length: 8 }, () => tvar(0));
    const ready = tvar(0);
    const rounds = 2000;
    const add = async (by: number) => {
      atomically(() => ready.update((count) => count + 1));
      await atomicallyWhen(() => check(ready.get() === 3));
      let attempts = 0;
      for (let round = 0; round < rounds; round += 1) {
        atomically(() => {
          attempts += 1;
          const value = cells[0]?.get() ?? 0;
          for (const cell of cells) {
            if (cell.get() !== value) throw new Error(`torn: ${cell.get()} beside ${value}`);
            cell.set(value + by);
          }
        });
      }
      return attempts;
    };
    const runs = await Promise.all([1, 2, 3].map((by) => pool.run(add, by)));
    for (const cell of cells) assert.equal(cell.peek(), rounds * 6);
    t.diagnostic(`attempts for ${rounds} commits: ${runs.join(', ')}`);
  });

  test(`a variable that another one frees and unlinks ends the attempt, no more; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    const list = tvar<TVar<number>>(tvar(0));
    const rounds = 20_000;
    const replace = () => {
      for (let round = 1; round <= rounds; round += 1) {
        atomically(() => {
          free(list.get());
          list.set(tvar(round));
        });
      }
      return 0;
    };
    const follow = () => {
      let last = 0;
      while (last < rounds) {
        const found = atomically(() => {
          const inner = list.get();
          return inner.get();
        });
        if (found < last) throw new Error(`${found} after ${last}`);
        last = found;
      }
      return 1;
    };
    assert.deepEqual(await Promise.all([pool.run(follow), pool.run(replace)]), [1, 0]);
  });

  test(`a transaction wakes those that wait in other workers; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const [request, answer] = [tvar(0), tvar(0)];
    const rounds = 300;
    const serves = pool.run(async () => {
      for (let round = 1; round <= rounds; round += 1) {
        await atomicallyWhen(() => {
          check(request.get() === round);
          answer.set(round);
        });
      }
    });
    for (let round = 1; round <= rounds; round += 1) {
      atomically(() => request.set(round));
      await withDeadline(
        atomicallyWhen(() => check(answer.get() === round)),
        deadlineMs,
        `answer ${round}`,
      );
    }
    await serves;
  });
}

for (const way of sharingWays) {
  const { worker, channel } = way;

  test(`workers that are killed at any moment block nobody; ${way.name}`, async () => {
    const [from, to] = [tvar(1000), tvar(0)];
    const log = tvar<readonly number[]>([]);
    const move = () => {
      for (;;) {
        atomically(() => {
          from.update((value) => value - 1);
          to.update((value) => value + 1);
          log.set([...log.get().slice(-20), to.get()]);
        });
      }
    };
    for (let round = 0; round < kills; round += 1) {
      const pool = new Pool({ size: 2, worker, channel });
      const runs = [pool.run(move), pool.run(move)].map((run) => assert.rejects(run));
      const before = to.peek();
      try {
        await withDeadline(
          atomicallyWhen(() => check(to.get() > before + 100)),
          deadlineMs,
          'progress',
        );
      } finally {
        await pool.destroy();
      }
      await Promise.all(runs);
      const [left, moved] = atomically(() => [from.get(), to.get()]);
      assert.equal(left + moved, 1000);
      atomically(() => to.set(to.get()));
    }
  });

  test(`a variable reaches the workers of a worker; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const made = pool.run(async () => {
      const inner = new Pool({ size: 1, worker, channel });
      try {
        const variable = tvar(1);
        await inner.run(() => atomically(() => variable.set(2)));
        return variable;
      } finally {
        await inner.close();
      }
    });
    assert.equal((await made).peek(), 2);
  });

  test(`a worker that waits and is killed costs nothing but its own wait; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const variable = tvar(0);
    const started = tvar(false);
    const run = pool.run(() => {
      atomically(() => started.set(true));
      return atomicallyWhen(() => {
        variable.get();
        retry();
      });
    });
    const ends = assert.rejects(run, (error) => hasCode(error, 'POOL_CLOSED'));
    await withDeadline(
      atomicallyWhen(() => check(started.get())),
      deadlineMs,
      'the worker',
    );
    await pool.destroy();
    await ends;
    for (let value = 1; value < 100; value += 1) atomically(() => variable.set(value));
    assert.equal(variable.peek(), 99);
  });
}

test('calls of pools and maps are refused in a transaction, which has no effect then', async (t) => {
  const pool = openPool(t, { size: 1 });
  const variable = tvar(1);
  const effects: readonly (() => unknown)[] = [
    () => pool.run(() => 1),
    () => pmap([1, 2], (item) => item, { pool }),
    () => pmap(new Float64Array(2), (item) => item, { pool }),
    () => pmap.pairs([1, 2], (one, other) => one + other, { pool }),
  ];
  for (const effect of effects) {
    const call = () =>
      atomically(() => {
        variable.set(2);
        effect();
      });
    assert.throws(call, (error) => hasCode(error, 'STM_SIDE_EFFECT'), String(effect));
  }
  assert.equal(variable.peek(), 1);
  assert.equal(await pool.run(() => 3), 3);
});
