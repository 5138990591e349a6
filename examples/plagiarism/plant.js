// Makes copies of a Java file as a plagiarist would: other names, methods in another order, a few other
// statements and literals, other comments and layout. The tests and the benchmark's corpus use it: planted
// copies must be found.
// It works on the tokens and the tree of the source, so that words in strings are no names and no `{` in a
// comment is a block. A copy parses, but need not compile: overrides of methods from other files are renamed
// too.
import { parser } from '@lezer/java';
import { kinds, tokenize } from './java.js';

/** Kinds of changes beside comments and layout. */
export const changes = ['renamed', 'reordered', 'edited'];

const words =
  'item value entry data part unit piece thing input output result state source target buffer area ' +
  'index counter holder helper bag box node link path step task rule mark side';

const statements = [
  'System.out.println("now here");',
  'int spare = 42;',
  'assert true;',
  'if (Boolean.getBoolean("trace")) { System.err.println("traced"); }',
];

// One in this many places where an edit could be has one.
const placesPerEdit = 6;

/** A copy of a Java text in which `done`, out of `changes`, was changed; the same for the same seed. */
export function plant(text, { seed, done = changes }) {
  const random = makeRandom(seed);
  const steps = [
    ...(done.includes('renamed') ? [rename] : []),
    ...(done.includes('reordered') ? [reorder] : []),
    ...(done.includes('edited') ? [edit] : []),
    ...[recomment, layOut],
  ];
  return steps.reduce((copy, step) => step(copy, random), text);
}

/** Gives every name that the text declares another one, wherever it stands. */
function rename(text, random) {
  const names = tokensOf(text).filter(({ kind }) => kind === 'name');
  const taken = new Set(names.map(({ spelled }) => spelled));
  const declared = new Set(nodesOf(text, 'Definition').map(({ from, to }) => text.slice(from, to)));
  const others = new Map([...declared].map((name) => [name, inventName(name, taken, random)]));
  return replace(
    text,
    names.map(({ spelled, from, to }) => ({ from, to, by: others.get(spelled) ?? spelled })),
  );
}

/** A name that is not taken, in the style of the old one: LIKE_THIS, LikeThis or likeThis. */
function inventName(old, taken, random) {
  const [first, second] = [random.pick(words.split(' ')), random.pick(words.split(' '))];
  const capitalize = (word) => word[0].toUpperCase() + word.slice(1);
  for (let number = taken.size; ; number++) {
    let name = `${first}${capitalize(second)}${number}`;
    if (/^[A-Z]/.test(old)) name = capitalize(name);
    if (/^[A-Z][A-Z0-9_]+$/.test(old)) name = `${first}_${second}_${number}`.toUpperCase();
    if (taken.has(name)) continue;
    taken.add(name);
    return name;
  }
}

/** Shuffles the methods of the outer classes, each with the comment before it. */
function reorder(text, random) {
  const bodies = nodesOf(text, 'ClassBody');
  const outer = bodies.filter(
    ({ from }) => !bodies.some((body) => body.from < from && from < body.to),
  );
  return replace(
    text,
    outer.flatMap(({ node }) => {
      const places = methodsOf(node);
      const methods = random.shuffle(places.map(({ from, to }) => text.slice(from, to)));
      return places.map((place, at) => ({ ...place, by: methods[at] }));
    }),
  );
}

/** Ranges of the methods of a class, from the end of what is before. */
function methodsOf(body) {
  const places = [];
  let end = body.from;
  for (let member = body.firstChild; member !== null; member = member.nextSibling) {
    if (/Comment$/.test(member.name)) continue;
    if (member.name === 'MethodDeclaration') places.push({ from: end, to: member.to });
    end = member.to;
  }
  return places;
}

/** Changes literals and puts statements at the beginning of blocks, here and there. */
function edit(text, random) {
  const literals = tokensOf(text)
    .filter(({ kind }) => kind === 'number' || kind === 'string')
    .map(({ kind, from, to }) => {
      const number = String(random.below(1000));
      return { from, to, by: kind === 'number' ? number : `"${random.pick(words.split(' '))}"` };
    });
  const inserted = nodesOf(text, 'Block').map(({ from }) => {
    const by = `\n${indentOf(text, from)}    ${random.pick(statements)}`;
    return { from: from + 1, to: from + 1, by };
  });
  const isDone = () => random.below(placesPerEdit) === 0;
  return replace(text, [...literals, ...inserted].filter(isDone));
}

/** Removes every other comment and writes something else into the rest. */
function recomment(text, random) {
  const say = () => Array.from({ length: 4 }, () => random.pick(words.split(' '))).join(' ');
  const lines = nodesOf(text, 'LineComment').map((place) => ({ ...place, other: `// ${say()}` }));
  const blocks = nodesOf(text, 'BlockComment').map((place) => ({
    ...place,
    other: `/* ${say()} */`,
  }));
  return replace(
    text,
    [...lines, ...blocks].map(({ from, to, other }) => {
      return { from, to, by: random.below(2) === 0 ? other : ' ' };
    }),
  );
}

/** Indents otherwise, and perhaps puts braces on lines of their own. */
function layOut(text, random) {
  const indent = random.pick(['\t', '  ', '      ']);
  const areBracesAlone = random.below(2) === 0;
  let end = 0;
  const gaps = tokensOf(text).map(({ spelled, from, to }) => {
    const gap = { from: end, to: from };
    end = to;
    return { ...gap, isBeforeBrace: spelled === '{' };
  });
  return replace(
    text,
    gaps.map(({ from, to, isBeforeBrace }) => {
      const gap = text.slice(from, to);
      const isAlone = isBeforeBrace && areBracesAlone && gap === ' ';
      const other = isAlone ? `\n${indentOf(text, from)}` : gap;
      return { from, to, by: other.replaceAll('    ', indent) };
    }),
  );
}

/** The blanks at the beginning of the line of a place. */
function indentOf(text, at) {
  return text.slice(text.lastIndexOf('\n', at - 1) + 1, at).match(/^[ \t]*/)[0];
}

function tokensOf(text) {
  const { codes, starts, ends } = tokenize(text);
  return Array.from(codes, (code, at) => {
    const [from, to] = [starts[at], ends[at]];
    return { kind: kinds[code], spelled: text.slice(from, to), from, to };
  });
}

/** The nodes with this name in the tree of a text: `{ node, from, to }`. */
function nodesOf(text, name) {
  const found = [];
  parser.parse(text).iterate({
    enter({ name: each, from, to, node }) {
      if (each === name) found.push({ node, from, to });
    },
  });
  return found;
}

/** Puts other text in places that do not overlap. */
function replace(text, places) {
  let [copy, end] = ['', 0];
  for (const { from, to, by } of [...places].sort((a, b) => a.from - b.from || a.to - b.to)) {
    copy += text.slice(end, from) + by;
    end = to;
  }
  return copy + text.slice(end);
}

/** Numbers that are the same for the same seed (mulberry32). */
function makeRandom(seed) {
  let state = seed >>> 0;
  const below = (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
  const pick = (list) => list[below(list.length)];
  const shuffle = (list) => {
    const left = [...list];
    return list.map(() => left.splice(below(left.length), 1)[0]);
  };
  return { below, pick, shuffle };
}
