// Objects that a class holds are, at each call, the objects that the call's arguments and captures hold:
// enumerations, registries, singletons, open or frozen, whatever the worker has of the class already.
// biome-ignore-all lint/complexity/noStaticOnlyClass: statics are the subject

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPool, ways } from '../calls/ways.js';

interface Case {
  readonly probe: (...args: unknown[]) => unknown;
  readonly args: () => unknown[];
  readonly change?: () => void;
}

const cases: Record<string, () => Case> = {
  'an enumeration': () => {
    class Color {
      static readonly red = new Color('red');
      static readonly green = new Color('green');
      readonly name: string;
      constructor(name: string) {
        this.name = name;
      }
    }
    return {
      probe: (given) => [given === Color.red, given === Color.green, Color.red.name],
      args: () => [Color.red],
    };
  },
  'a frozen enumeration with lists of its instances': () => {
    class Color {
      static readonly red = new Color('red');
      static readonly all = [Color.red];
      static readonly byName = new Map([['red', Color.red]]);
      readonly name: string;
      constructor(name: string) {
        this.name = name;
        Object.freeze(this);
      }
      static {
        Object.freeze(Color);
      }
    }
    return {
      probe: (given) => [
        given === Color.red,
        Color.all[0] === given,
        Color.byName.get('red') === Color.red,
        Object.isFrozen(Color),
      ],
      args: () => [Color.red],
    };
  },
  'a private list': () => {
    class Unit {
      static readonly #all: Unit[] = [];
      static has(unit: unknown): boolean {
        return Unit.#all.some((each) => each === unit);
      }
      static make(): Unit {
        const made = new Unit();
        Unit.#all.push(made);
        return made;
      }
    }
    const units = [Unit.make()];
    return {
      probe: (given) => [Unit.has(given), Unit.has(units[0]), Unit.has({})],
      args: () => units,
      change: () => units.unshift(Unit.make()),
    };
  },
  'an instance of a subclass, held by a frozen base': () => {
    class Shape {
      static unit: Shape | undefined;
      sides = 0;
    }
    class Square extends Shape {
      override sides = 4;
    }
    Shape.unit = new Square();
    Object.freeze(Shape);
    return {
      probe: (given) => [
        given === Shape.unit,
        Shape.unit instanceof Square,
        Object.getPrototypeOf(Square) === Shape,
        new Square() instanceof Shape,
        Shape.unit?.sides,
      ],
      args: () => [Shape.unit],
      change: () => Object.assign(Shape.unit ?? {}, { sides: 5 }),
    };
  },
  'another class': () => {
    class Color {
      static readonly red = new Color();
    }
    class Palette {
      static readonly main = Color.red;
      static readonly all = { main: Color.red };
    }
    return {
      probe: (given) => [given === Color.red, Palette.main === given, Palette.all.main === given],
      args: () => [Palette.main],
    };
  },
  'a plain object': () => {
    class Settings {
      static readonly defaults = { level: 1 };
    }
    return {
      probe: (given) => [given === Settings.defaults, Settings.defaults.level],
      args: () => [Settings.defaults],
      change: () => {
        Settings.defaults.level += 1;
      },
    };
  },
  'functions of a frozen class whose variables change': () => {
    let count = 1;
    class Counted {
      static readonly count = () => count;
      static readonly parts = { double: () => 2 * count };
    }
    Object.defineProperty(Counted.prototype, 'late', { value: () => -count });
    Object.freeze(Counted);
    Object.freeze(Counted.prototype);
    return {
      probe: () => [
        Counted.count(),
        Counted.parts.double(),
        Reflect.get(new Counted(), 'late')(),
        Object.isFrozen(Counted),
      ],
      args: () => [],
      change: () => {
        count += 1;
      },
    };
  },
};

for (const way of ways) {
  test(`${way.name}: an object that a class holds is the same object at each call`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    for (const [name, make] of Object.entries(cases)) {
      const { probe, args, change } = make();
      for (const call of [1, 2, 3]) {
        const home = probe(...args());
        assert.deepEqual(await pool.run(probe, ...args()), home, `${name}, call ${call}`);
        change?.();
      }
    }
  });
}

test('what a worker did to a static object that is met nowhere else lives on there', async (t) => {
  class Cache {
    static readonly entries: number[] = [];
  }
  const pool = openPool(t, { size: 1 });
  const add = () => Cache.entries.push(1);
  assert.deepEqual([await pool.run(add), await pool.run(add)], [1, 2]);
});
