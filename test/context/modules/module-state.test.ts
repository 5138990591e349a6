// Parts of an instance that a module keeps which workers load for themselves: a copy would lose them.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { hasCode } from '../../../src/errors.js';
import { Pool } from '../../../src/public.js';
import * as keeps from '../fixtures/keeps.js';
import { put, take, weakTable } from '../fixtures/keeps.js';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

/** Classes of the program that keep a part of each instance in another module. */
class ByFunctions {
  constructor(value: number) {
    put(this, value);
  }
  get value(): number | undefined {
    return take(this);
  }
}

class ByTable {
  constructor(value: number) {
    weakTable.set(this, value);
  }
  get value(): number | undefined {
    return weakTable.get(this);
  }
}

class ByNamespace {
  constructor(value: number) {
    keeps.put(this, value);
  }
  get value(): number | undefined {
    return keeps.take(this);
  }
}

class Unlisted {
  value = 9;
  list(): void {
    put(this, this.value);
  }
}

const instances: readonly (readonly [
  value: { readonly value: unknown },
  where: RegExp | undefined,
])[] = [
  [new keeps.InWeakMap(1), /InWeakMap.* in a WeakMap/],
  [new keeps.Inherited(1), /Inherited.* in a WeakMap/],
  [new keeps.InSet(), /InSet.* in a Set/],
  [new keeps.UnderSymbol(), undefined],
  [keeps.makeInner(), undefined],
  [new keeps.UnderChangingSymbol(), /UnderChangingSymbol.* under a symbol/],
  [new keeps.UnderRegisteredSymbol(), undefined],
  [new keeps.Plain(), undefined],
  [new keeps.InStatic(1), /InStatic.* in a WeakMap/],
  [new keeps.InPrivateStatic(1), /InPrivateStatic.* in a WeakMap/],
  [new keeps.InOtherClass(1), /InOtherClass.* in a WeakMap/],
  [new keeps.InProperty(1), /InProperty.* in a Map/],
  [new keeps.BehindFunctions(1), /BehindFunctions.* in a WeakMap/],
  [new keeps.UnderSymbolOfObject(), /UnderSymbolOfObject.* under a symbol/],
  [new keeps.OfError(1), /OfError.* in a WeakMap/],
  [new keeps.OfException(1), /OfException.* in a WeakMap/],
  [new keeps.OfMemory(1), /OfMemory.* in a WeakMap/],
  [new keeps.OfFunction(1), /OfFunction.* in a WeakMap/],
  [new ByFunctions(1), /ByFunctions.* in a WeakMap/],
  [new ByTable(1), /ByTable.* in a WeakMap/],
  [new ByNamespace(1), /ByNamespace.* in a WeakMap/],
  [new Unlisted(), undefined],
];

for (const [instance, where] of instances) {
  const { name } = instance.constructor;
  const read = [() => peer.run(() => instance.value), () => peer.run((it) => it.value, instance)];
  test(`${name}: ${where === undefined ? 'travels' : 'is refused for what its module keeps'}`, async () => {
    for (const call of read) {
      if (where === undefined) assert.equal(await call(), instance.value);
      else {
        await assert.rejects(
          call,
          (error) =>
            hasCode(error, 'TRANSFER_UNSUPPORTED') &&
            where.test(String(error)) &&
            /perWorker\(/.test(String(error)) &&
            (typeof instance === 'function' || /\n {2}path: /.test(String(error))),
        );
      }
    }
  });
}

test('such a result is refused; made and used in the worker it works as at home', async () => {
  assert.equal(await peer.run(() => new keeps.InWeakMap(7).value), 7);
  await assert.rejects(
    () => peer.run(() => new keeps.InWeakMap(7)),
    (error) => hasCode(error, 'TRANSFER_UNSUPPORTED') && /the result/.test(String(error)),
  );
});

for (const Class of [keeps.InLaterVariable, keeps.InLaterProperty]) {
  test(`${Class.name}: a collection that is made later counts`, async () => {
    const instance = new Class();
    assert.equal(await peer.run((it) => it.value, instance), undefined);
    instance.fill(5);
    await assert.rejects(
      () => peer.run((it) => it.value, instance),
      (error) => hasCode(error, 'TRANSFER_UNSUPPORTED') && /in a WeakMap/.test(String(error)),
    );
  });
}

test('the stack of a thrown error notes the part that its module kept', async () => {
  const pool = new Pool({ size: 1 });
  after(() => pool.close());
  const thrown = pool.run(() => {
    throw new keeps.OfError(3);
  });
  await assert.rejects(thrown, (error) => {
    assert.ok(error instanceof keeps.OfError);
    assert.match(String(error.stack), /left out.*what a module keeps of it in a WeakMap/);
    return true;
  });
});
