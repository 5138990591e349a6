// Java to tokens: what changes them and what does not, and where they stand.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { kinds, lineStartsOf, placeOf, tokenize } from './modules.js';

function kindsOf(text: string): string {
  return Array.from(tokenize(text).codes, (code) => kinds[code]).join(' ');
}

const alike: readonly (readonly [what: string, one: string, other: string])[] = [
  ['names', 'class A { int b(C c) { return c.d; } }', 'class V { int w(X x) { return x.y; } }'],
  ['values of literals', 'class A { int a = 1; }', 'class A { int a = 0x1F_FFL; }'],
  ['spellings of a string', 'class A { B b = "c"; }', 'class A { B b = """\n  c"d\n  """; }'],
  ['comments', 'class A { /* b */ } // c', '/** d */ class A { }'],
  ['layout', 'class A{int b=1;}', 'class A\r\n{\r\n\tint b\r\n= 1;\r\n}'],
  [
    'imports and another package',
    'package a.b;\nimport c.d.*;\nimport static e.F.g;\nclass A { }',
    'class A { }',
  ],
  ['blanks between ends of generics', 'class A { B<C<D>> e; }', 'class A { B<C<D> > e; }'],
];

for (const [what, one, other] of alike) {
  test(`with other ${what} the tokens are the same`, () => {
    assert.equal(kindsOf(one), kindsOf(other));
  });
}

test('keywords, signs and the classes of literals are what tokens are', () => {
  assert.equal(
    kindsOf(
      'class A { boolean b = !true ? c >= 1.5e3 : \'\\n\' != "d"; @E void f(int... g) { h += i -> j::k; } }',
    ),
    'class name { boolean type name = ! boolean ? name >= number : character != string ; ' +
      '@ name void name ( int ... name ) { name += name -> name :: name ; } }',
  );
});

// Java has words that are keywords in some places, and the grammar takes some of them for that elsewhere.
const contextual = 'var record yield sealed permits when to with module open exports uses';

for (const word of contextual.split(' ')) {
  test(`a variable called ${word} is a name like any other`, () => {
    const program = (name: string) =>
      `class A { int f(int ${name}) { return ${name} < 3 ? g(${name}, 1) : ${name}++; } }`;
    assert.equal(kindsOf(program(word)), kindsOf(program('b')));
  });
}

test('the range of a token holds its text, and text between tokens is blank or left out', () => {
  const text = readFileSync('examples/plagiarism/sample/anna/Library.java', 'utf8');
  const { codes, starts, ends } = tokenize(text);
  let between = '';
  let end = 0;
  codes.forEach((code, at) => {
    const [from = 0, to = 0] = [starts[at], ends[at]];
    assert.ok(from >= end && to > from);
    const spelled = text.slice(from, to);
    const kind = kinds[code] ?? '';
    if (kind === 'name') assert.match(spelled, /^\w+$/);
    else if (kind === 'string') assert.match(spelled, /^".*"$/);
    else if (!/^(number|boolean)/.test(kind)) assert.equal(spelled, kind);
    between += text.slice(end, from);
    end = to;
  });
  between += text.slice(end);
  const leftOut = between.replace(/\/\*.*?\*\/|package .*?;|import .*?;/gs, '');
  assert.equal(leftOut.trim(), '');
});

test('lines and columns count from 1, whatever ends a line', () => {
  const text = 'a\nbc\r\nd\re';
  const starts = lineStartsOf(text);
  const places = Array.from('abcde', (letter) => placeOf(starts, text.indexOf(letter)));
  assert.deepEqual(
    places.map(({ line, column }) => `${line}:${column}`),
    ['1:1', '2:1', '2:2', '3:1', '4:1'],
  );
});

test('any text has tokens, in order and without overlap', () => {
  const pieces = fc.constantFrom(
    'class',
    ' A',
    '{',
    '}',
    '"',
    "'",
    '/*',
    '*/',
    '//',
    '\n',
    '(',
    '@',
    '\u{1d11e}',
    '\0',
    '#',
  );
  const texts = fc.oneof(
    fc.string(),
    fc.array(pieces).map((all) => all.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const { codes, starts, ends } = tokenize(text);
      assert.equal(codes.length, starts.length);
      starts.forEach((start, at) => {
        assert.ok(start >= (at === 0 ? 0 : (ends[at - 1] ?? 0)));
        assert.ok((ends[at] ?? 0) > start && (ends[at] ?? 0) <= text.length);
      });
    }),
  );
});

test('a file with a syntax error still has all its tokens', () => {
  const whole = kindsOf('class A { int f() { return 1; } void g() { h(2); } }');
  const broken = kindsOf('class A { int f( { return 1; } void g() { h(2) } }');
  assert.equal(
    broken,
    whole.replace('int name ( )', 'int name (').replace('number ) ;', 'number )'),
  );
});
