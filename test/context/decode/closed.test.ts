// Functions and classes that are frozen, sealed or closed to properties and name themselves: one object with
// their name there as well, at the first call and at later ones.
// biome-ignore-all lint/complexity/noStaticOnlyClass: statics are the subject
// biome-ignore-all lint/complexity/noThisInStatic: `this` and the name are compared

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

type Close = <T>(value: T) => T;
type Fn = (...args: number[]) => unknown;

let outer = 1;

const kinds: readonly (readonly [title: string, make: (close: Close) => () => unknown])[] = [
  [
    'a named function',
    (close) => {
      const f: Fn = close(function fact(n = 5): unknown {
        return n < 2 ? [f === fact, Object.isExtensible(fact), outer] : fact(n - 1);
      });
      return () => [f(), f(3)];
    },
  ],
  [
    'an arrow',
    (close) => {
      const f: Fn = close((n = 3) => (n === 0 ? [Object.isFrozen(f), outer] : f(n - 1)));
      return () => f();
    },
  ],
  [
    'a function with a method that calls it',
    (close) => {
      const f = (n: number): unknown => (n === 0 ? [f.base, f.self === f] : f.step(n));
      f.base = outer;
      f.step = (n: number): unknown => f(n - 1);
      f.self = f as unknown;
      close(f);
      return () => [f(2), f.step(2), Object.isSealed(f)];
    },
  ],
  [
    'a constructor function',
    (close) => {
      function Made(this: object) {
        Reflect.set(this, 'made', [this instanceof Made, Object.isFrozen(Made.prototype)]);
      }
      Reflect.set(Made.prototype, 'again', () => Reflect.construct(Made, []));
      close(Made);
      close(Made.prototype);
      return () => Reflect.get(Reflect.construct(Made, []).again(), 'made');
    },
  ],
  [
    'a class',
    (close) => {
      const C = class Inner {
        static n = outer;
        static make = () => new Inner();
        static get again(): unknown {
          return [this === Inner, Inner.make() instanceof C, outer];
        }
        probe(): unknown {
          return [Inner === C, this.constructor === Inner, Inner.n, Object.isExtensible(C)];
        }
      };
      close(C);
      close(C.prototype);
      return () => [C.make().probe(), C.again, new C().probe()];
    },
  ],
  [
    'a class below another',
    (close) => {
      class Base {
        static who(): unknown {
          return [this === Sub, Base.name];
        }
      }
      class Sub extends Base {
        self(): unknown {
          return [super.constructor === Base, Sub.who(), outer];
        }
      }
      close(Base);
      close(Sub);
      return () => [Sub.who(), new Sub().self()];
    },
  ],
  [
    'an accessor',
    (close) => {
      const f = (): unknown => Reflect.get(f, 'value');
      Object.defineProperty(f, 'value', { get: () => [f === close(f), outer] });
      close(f);
      return () => f();
    },
  ],
];

const closings: readonly (readonly [title: string, close: Close])[] = [
  ['frozen', Object.freeze],
  ['sealed', Object.seal],
  ['closed to properties', Object.preventExtensions],
];

for (const [how, close] of closings) {
  for (const [title, make] of kinds) {
    test(`${title} that is ${how} and names itself travels at each call`, async () => {
      const probe = make(close);
      for (let call = 0; call < 2; call += 1) {
        assert.deepEqual(await peer.run(probe), probe());
        assert.deepEqual(await peer.run((given) => given(), probe), probe());
        outer += 1;
      }
    });
  }
}
