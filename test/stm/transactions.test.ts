// The rules of transactions in one thread: what is seen, what is undone, what is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import {
  afterCommit,
  atomically,
  atomicallyWhen,
  check,
  free,
  nested,
  orElse,
  retry,
  type TVar,
  tvar,
} from '../../src/stm/public.js';

const coded = (code: Parameters<typeof hasCode>[1]) => (error: unknown) => hasCode(error, code);

test('a transaction sees what it has set, and others see it behind the commit', () => {
  const [one, two] = [tvar(1), tvar(2)];
  const sum = atomically(() => {
    one.set(one.get() + 10);
    two.update((value) => value + one.get());
    return one.get() + two.get();
  });
  assert.equal(sum, 24);
  assert.deepEqual([one.peek(), two.peek()], [11, 13]);
});

test('what a transaction throws undoes it and arrives', () => {
  const variable = tvar(1);
  const failure = new Error('no');
  const run = () =>
    atomically(() => {
      variable.set(2);
      throw failure;
    });
  assert.throws(run, failure);
  assert.equal(variable.peek(), 1);
  assert.equal(
    atomically(() => variable.update((value) => value + 1)),
    2,
  );
});

test('a transaction inside of another one is a part of it', () => {
  const variable = tvar(1);
  const run = () =>
    atomically(() => {
      atomically(() => variable.set(2));
      assert.equal(variable.get(), 2);
      throw new Error('outer');
    });
  assert.throws(run, /outer/);
  assert.equal(variable.peek(), 1);
});

test('a part that throws is undone alone, and the rest counts', () => {
  const [one, two] = [tvar(1), tvar('old')];
  let made: TVar<number> | undefined;
  atomically(() => {
    one.set(2);
    const part = () =>
      nested(() => {
        one.set(3);
        two.set('new');
        made = tvar(7);
        afterCommit(() => assert.fail('of the part that was undone'));
        assert.deepEqual([one.get(), two.get()], [3, 'new']);
        throw new Error('part');
      });
    assert.throws(part, /part/);
    assert.deepEqual([one.get(), two.get()], [2, 'old']);
    two.set(`${two.get()}er`);
  });
  assert.deepEqual([one.peek(), two.peek()], [2, 'older']);
  assert.throws(() => made?.peek(), coded('STM_GONE'));
});

test('parts inside of parts are undone each to their own start', () => {
  const variable = tvar('a');
  atomically(() => {
    nested(() => {
      variable.set('b');
      assert.throws(() =>
        nested(() => {
          variable.set('c');
          variable.set('d');
          throw new Error('inner');
        }),
      );
      assert.equal(variable.get(), 'b');
    });
    assert.equal(variable.get(), 'b');
    assert.throws(() =>
      nested(() => {
        nested(() => variable.set('e'));
        assert.equal(variable.get(), 'e');
        throw new Error('outer');
      }),
    );
    assert.equal(variable.get(), 'b');
  });
  assert.equal(variable.peek(), 'b');
});

test('a part that is undone brings back a variable that it has ended', () => {
  for (const value of [2, 'a text']) {
    const variable = tvar<number | string>(1);
    atomically(() => {
      variable.set(value);
      const end = () => {
        free(variable);
        throw new Error('undone');
      };
      assert.throws(() => nested(end), { message: 'undone' });
      assert.equal(variable.get(), value);
    });
    assert.equal(variable.peek(), value);
  }
});

test('a way that retries is undone, and the next one counts', () => {
  const [slots, left] = [tvar(0), tvar('')];
  const way = orElse(
    () => {
      left.set('first');
      slots.update((value) => value + 5);
      check(slots.get() > 100);
      return 'first';
    },
    () => {
      left.set(`${left.get()}second`);
      return 'second';
    },
  );
  assert.equal(way, 'second');
  assert.deepEqual([slots.peek(), left.peek()], [0, 'second']);
  assert.throws(
    () =>
      atomically(() =>
        orElse(
          () => retry(),
          () => retry(),
        ),
      ),
    coded('STM_WOULD_BLOCK'),
  );
});

test('what a way throws does not go to the next way', () => {
  const variable = tvar(1);
  const run = () =>
    orElse(
      () => {
        variable.set(2);
        throw new Error('of the way');
      },
      () => variable.set(3),
    );
  assert.throws(run, /of the way/);
  assert.equal(variable.peek(), 1);
});

test('retry in atomically is refused, also where it was caught', () => {
  const variable = tvar(1);
  const isBlocked = coded('STM_WOULD_BLOCK');
  assert.throws(() => atomically(() => retry()), isBlocked);
  const swallowing = () =>
    atomically(() => {
      variable.set(2);
      try {
        retry();
      } catch {
        return 'went on';
      }
    });
  assert.throws(swallowing, isBlocked);
  assert.equal(variable.peek(), 1);
});

test('effects follow the commit, once, in their order; none where it does not commit', () => {
  const seen: string[] = [];
  const variable = tvar(1);
  atomically(() => {
    afterCommit(() => seen.push('one'));
    variable.set(2);
    afterCommit(() => seen.push(`two: ${variable.peek()}`));
    assert.deepEqual(seen, []);
  });
  assert.deepEqual(seen, ['one', 'two: 2']);
  assert.throws(() =>
    atomically(() => {
      afterCommit(() => seen.push('never'));
      throw new Error('no');
    }),
  );
  const failing = () =>
    atomically(() => {
      afterCommit(() => {
        throw new Error('effect');
      });
      afterCommit(() => seen.push('three'));
      variable.set(3);
    });
  assert.throws(failing, /effect/);
  assert.deepEqual(seen, ['one', 'two: 2', 'three']);
  assert.equal(variable.peek(), 3);
});

test('an asynchronous function is refused and has no effect', () => {
  const variable = tvar(1);
  const isRefused = coded('STM_ASYNC');
  assert.throws(
    () =>
      atomically(async () => {
        variable.set(2);
      }),
    isRefused,
  );
  assert.throws(
    () =>
      atomically(() => {
        variable.set(2);
        // biome-ignore lint/suspicious/noThenProperty: a thenable is what the test is about
        return { then: () => {} };
      }),
    isRefused,
  );
  assert.equal(variable.peek(), 1);
});

test('calls that need a transaction are refused outside, and effects inside', async () => {
  const variable = tvar(1);
  for (const call of [
    () => variable.get(),
    () => variable.set(2),
    () => variable.update((value) => value),
    () => retry(),
    () => check(false),
    () => afterCommit(() => {}),
  ]) {
    assert.throws(call, coded('STM_OUTSIDE'));
  }
  let inside: Promise<unknown> | undefined;
  atomically(() => {
    inside = atomicallyWhen(() => variable.get());
  });
  await assert.rejects(inside ?? Promise.resolve(), coded('STM_SIDE_EFFECT'));
  assert.equal(variable.peek(), 1);
});

test('a variable that was freed is gone, in all its uses, and its memory is used again', () => {
  const variable = tvar('some bytes');
  const holder = tvar(variable);
  free(variable);
  const isGone = coded('STM_GONE');
  assert.throws(() => variable.peek(), isGone);
  assert.throws(() => atomically(() => variable.get()), isGone);
  assert.throws(() => atomically(() => variable.set('again')), isGone);
  assert.throws(() => free(variable), isGone);
  assert.throws(() => atomically(() => holder.get().get()), isGone);
  atomically(() => {
    const own = tvar(1);
    own.set(2);
    free(own);
    assert.throws(() => own.get(), isGone);
    assert.throws(() => own.set(3), isGone);
  });
  const other = tvar(5);
  assert.throws(
    () =>
      atomically(() => {
        free(other);
        throw new Error('not after all');
      }),
    /not after all/,
  );
  assert.equal(other.peek(), 5);
});

test('many writes are one commit, too many are refused', () => {
  const variables = Array.from({ length: 16_385 }, (_, at) => tvar(at));
  atomically(() => {
    for (const variable of variables.slice(1)) variable.set(-1);
  });
  assert.equal(variables[16_384]?.peek(), -1);
  assert.equal(variables[0]?.peek(), 0);
  const tooMany = () =>
    atomically(() => {
      for (const variable of variables) variable.set(-2);
    });
  assert.throws(tooMany, coded('STM_TOO_LARGE'));
  assert.equal(variables[16_384]?.peek(), -1);
  const oneOften = () =>
    atomically(() => {
      for (let turn = 0; turn < 50_000; turn += 1) variables[0]?.set(turn);
    });
  oneOften();
  assert.equal(variables[0]?.peek(), 49_999);
  for (const variable of variables) free(variable);
});

test('wrong arguments are refused', async () => {
  const isNoFunction = coded('TASK_NOT_FUNCTION');
  assert.throws(() => Reflect.apply(atomically, undefined, [1]), isNoFunction);
  assert.throws(() => Reflect.apply(nested, undefined, [undefined]), isNoFunction);
  assert.throws(() => Reflect.apply(orElse, undefined, [() => 1, 'way']), isNoFunction);
  assert.throws(() => atomically(() => Reflect.apply(afterCommit, undefined, [1])), isNoFunction);
  await assert.rejects(Reflect.apply(atomicallyWhen, undefined, [1]), isNoFunction);
});
