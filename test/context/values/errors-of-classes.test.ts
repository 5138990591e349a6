// An error keeps its class on the way, even if some of its properties cannot travel.

import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { after, test } from 'node:test';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

const unsendable: Readonly<Record<string, () => unknown>> = {
  'a signal': () => AbortSignal.abort(),
  'a socket': () => new Socket(),
  'a promise': () => Promise.resolve(),
  'a WeakMap': () => new WeakMap(),
  'a Proxy': () => new Proxy({}, {}),
  'a function that is native': () => Math.max.bind(null, 1),
  'an object with one of them': () => ({ deep: [new WeakSet()], near: 1 }),
};

class NotFound extends Error {
  readonly id: number;
  readonly held: unknown;
  constructor(message: string, id: number, held: unknown) {
    super(message);
    this.id = id;
    this.held = held;
  }
  override get name(): string {
    return `NotFound ${this.id}`;
  }
}

class Gone extends NotFound {
  readonly #secret = 7;
  tell(): number {
    return this.#secret;
  }
}

/** A class written as before ES2015, like the errors of jsonwebtoken. */
function Old(this: Record<string, unknown>, message: string, held: unknown): void {
  Error.captureStackTrace(this, Old);
  this['message'] = message;
  this['held'] = held;
}
Old.prototype = Object.create(Error.prototype, {
  constructor: { value: Old, writable: true, configurable: true },
});
const makeOld = (message: string, held: unknown): Error => Reflect.construct(Old, [message, held]);

async function thrownBy(task: () => never): Promise<unknown> {
  return peer.run(task).then(
    () => assert.fail('it threw nothing'),
    (error: unknown) => error,
  );
}

for (const [title, make] of Object.entries(unsendable)) {
  test(`an error with ${title} arrives as one of its class`, async () => {
    const found = await thrownBy(() => {
      throw new NotFound('no user', 4, make());
    });
    assert.ok(found instanceof NotFound, String(found));
    assert.equal(found.constructor, NotFound);
    assert.deepEqual([found.message, found.id, found.name], ['no user', 4, 'NotFound 4']);
    if (title.startsWith('a function')) return; // bound functions travel
    assert.deepEqual(found.held, title.startsWith('an object') ? { near: 1 } : undefined);
    assert.match(found.stack ?? '', /at \[left out, which cannot travel: held(?:\.deep)?\]/);
    const old = await thrownBy(() => {
      throw makeOld('gone', make());
    });
    assert.ok(old instanceof Old && old instanceof Error);
    assert.equal(old.message, 'gone');
  });
}

test('an object in an error arrives without its members that cannot travel', async () => {
  const found = await thrownBy(() => {
    class Response {
      readonly status = 404;
      readonly body = Promise.resolve();
    }
    throw new NotFound('no page', 1, new Response());
  });
  assert.ok(found instanceof NotFound);
  assert.deepEqual(JSON.stringify(found.held), '{"status":404}');
  assert.equal(Object(found.held).constructor.name, 'Response');
});

class Coded extends Error {
  readonly #code: number;
  constructor(message: string, code: number) {
    super(message);
    this.#code = code;
  }
  get code(): number {
    return this.#code;
  }
}

test('a thrown error with private members keeps its class, and its stack notes their loss', async () => {
  const found = await thrownBy(() => {
    throw Object.assign(new Coded('no user', 4), { id: 5 });
  });
  assert.ok(found instanceof Coded);
  assert.deepEqual([found.message, Reflect.get(found, 'id')], ['no user', 5]);
  assert.match(found.stack ?? '', /at \[left out, which cannot travel: its private members\]/);
  assert.throws(() => found.code, TypeError);
});

test('causes and parts of an error keep their classes', async () => {
  const found = await thrownBy(() => {
    const parts = [new NotFound('first', 1, new WeakMap()), new Gone('second', 2, new WeakMap())];
    throw new AggregateError(parts, 'both', { cause: new NotFound('third', 3, new WeakMap()) });
  });
  assert.ok(found instanceof AggregateError);
  assert.deepEqual(
    found.errors.map((each: unknown) => [each instanceof NotFound, each instanceof Gone]),
    [
      [true, false],
      [true, true],
    ],
  );
  assert.ok(found.cause instanceof NotFound);
});

test('an error whose class cannot travel arrives as one of the nearest built-in class', async () => {
  const found = await thrownBy(() => {
    const weak = new WeakMap();
    class Odd extends TypeError {
      readonly held = weak;
      readonly id = 3;
      hold(): unknown {
        return weak;
      }
    }
    throw new Odd('odd');
  });
  assert.ok(found instanceof TypeError);
  assert.deepEqual([found.message, Reflect.get(found, 'id')], ['odd', 3]);
});

test('errors of functions that inherit from Error travel as argument and result', async () => {
  const given = makeOld('given', 5);
  const [message, isError, back] = await peer.run(
    (error) => [error.message, error instanceof Error, makeOld('made', 6)] as const,
    given,
  );
  assert.deepEqual([message, isError], ['given', true]);
  assert.ok(back instanceof Old && back instanceof Error);
  assert.deepEqual([back.message, Reflect.get(back, 'held')], ['made', 6]);
  assert.match(back.stack ?? '', /errors-of-classes/);
});

test('no method of an object that resembles a class is called at home', async () => {
  const calls: string[] = [];
  function Shape(): void {
    calls.length = 0;
  }
  const shape = Object.create({
    constructor: Shape,
    toString: (): string => `${calls.push('toString')}`,
    valueOf: (): number => calls.push('valueOf'),
  });
  assert.equal(await peer.run(() => typeof shape), 'object');
  assert.deepEqual(calls, []);
});
