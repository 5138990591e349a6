// What a module that hosts load for themselves keeps of an instance: a copy would lose it.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import * as keeps from './fixtures/keeps.js';
import { Peer } from './harness.js';

const peer = new Peer();
after(() => peer.close());

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
            /perHost\(.*\n {2}path: /.test(String(error)),
        );
      }
    }
  });
}

test('so is a result; made and used in the host it is as at home', async () => {
  assert.equal(await peer.run(() => new keeps.InWeakMap(7).value), 7);
  await assert.rejects(
    () => peer.run(() => new keeps.InWeakMap(7)),
    (error) => hasCode(error, 'TRANSFER_UNSUPPORTED') && /the result/.test(String(error)),
  );
});
