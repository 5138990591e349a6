// Memory that a call transfers is what it was: of its class, with what was set on it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../../src/errors.js';
import { openPool, ways } from '../calls/ways.js';

class Frames extends ArrayBuffer {
  get seconds(): number {
    return this.byteLength / 4;
  }
}

class Samples extends Uint8Array {
  rate = 8;
}

class Sealed extends Uint8Array {
  readonly #unit = 'B';
  get unit(): string {
    return this.#unit;
  }
}

for (const way of ways) {
  test(`${way.name}: memory that is transferred keeps its class and properties`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const frames = Object.assign(new Frames(8), { title: 'a' });
    const samples = new Samples(8);
    const bytes = Object.assign(Buffer.from(new ArrayBuffer(8)), { title: 'b' });
    const seen = pool.with({ transfer: [frames, samples.buffer, bytes.buffer] }).run(
      (memory, list, text) => [
        [memory.constructor.name, memory.seconds, memory.title],
        [list.constructor.name, list.rate, list.length],
        [Buffer.isBuffer(text), text.title],
      ],
      frames,
      samples,
      bytes,
    );
    assert.deepEqual(await seen, [
      ['Frames', 2, 'a'],
      ['Samples', 8, 8],
      [true, 'b'],
    ]);
    const sealed = new Sealed(8);
    await assert.rejects(
      async () => await pool.with({ transfer: [sealed.buffer] }).run((given) => given.unit, sealed),
      (error) =>
        hasCode(error, 'TRANSFER_UNSUPPORTED') &&
        /an instance of Sealed: its class has private members/.test(String(error)),
    );
    assert.equal(sealed.length, 8, 'it is kept');
  });
}
