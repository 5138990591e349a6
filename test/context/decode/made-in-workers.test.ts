// Functions that a worker made and returns, where no file has their text: a prompt, `node -e`, `new
// Function`, eval, node:vm, and loaders that compile the modules that they load.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import vm from 'node:vm';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

/** Texts of functions that, called in a worker, make something with a function `f`. */
const cases: Readonly<Record<string, string>> = {
  'an arrow in a class field': '() => { class A { x = 5; f = () => this.x; } return new A(); }',
  'one in a class field of an outer class': '() => new Outer()',
  'one that a constructor made':
    '() => { class A { constructor() { this.x = 5; this.f = () => this.x; } } return new A(); }',
  'an async arrow in a class field':
    '() => { class A { x = 5; f = async () => this.x; } return new A(); }',
  'arrows of two instances':
    '() => { const made = [5, 6].map((n) => { class A { x = n; f = () => this.x; } return new A(); }); return made[0]; }',
  'an arrow that captures': '() => { let x = 4; x += 1; return { f: () => x }; }',
  'a method': '() => ({ x: 5, f() { return this.x; } })',
  'a class that captures': '() => { class A { static x = 5; } return { f: () => A.x }; }',
  'a class of several lines': `() => {
    class A {
      x = 5;
      f = () => this.x;
    }
    return new A();
  }`,
};

const outer = 'class Outer { x = 5; f = () => this.x; }';
const wide = ' '.repeat(600);

/** Ways in which the text of a program becomes code. */
const ways: Readonly<Record<string, (text: string) => unknown>> = {
  'new Function': (text) => new Function(`${outer}; return ${text}`)(),
  eval: (text) => vm.runInThisContext('eval')(`${outer}; (${text})`),
  'vm without a name': (text) => vm.runInThisContext(`(() => { ${outer}; return (${text}); })()`),
  'vm of one line': (text) => compiled(`${outer}; return ${text}`, '[eval]'),
  'vm of several lines': (text) => compiled(`\n${outer};\n\n  return ${text}`, '[eval]'),
  'vm far to the right': (text) => compiled(`${outer};${wide}return ${text}`, '[eval]'),
  'a loader': (text) => compiled(`\n${outer};\n\n  return ${text}`, 'file:///app/nowhere.ts'),
  'a loader that makes one line': (text) => compiled(`${outer};return ${text}`, 'file:///a/b.ts'),
  'code with an offset': (text) => compiled(`${outer};\nreturn ${text}`, 'file:///a/c.ts', 40),
  'another context': (text) => vm.runInNewContext(`${outer}; (${text})`, {}, 'context.js'),
};

function compiled(body: string, filename: string, lineOffset = 0): unknown {
  return vm.compileFunction(body, [], { filename, lineOffset })();
}

for (const [way, make] of Object.entries(ways)) {
  for (const [title, text] of Object.entries(cases)) {
    test(`${way}: ${title} comes back from a worker and works`, async () => {
      const fn = make(text);
      assert.ok(typeof fn === 'function');
      const made: unknown = await peer.run(() => Reflect.apply(fn, undefined, []));
      const f = (): unknown => Reflect.apply(Reflect.get(Object(made), 'f'), made, []);
      assert.equal(await f(), 5);
      const expected = Object.hasOwn(Object(made), 'x') ? 7 : 5;
      Reflect.set(Object(made), 'x', 7);
      assert.equal(await f(), expected);
      assert.equal(await peer.run((given) => Object(given).f(), made), expected);
    });
  }
}
