// Converts Java source to tokens for comparing programs: the part that two copies still share when names,
// comments and layout differ. Every name is the same token, literals are one token per class. Imports,
// package declarations and comments give none.
//
// The tokens come from @lezer/java, the grammar of the CodeMirror editor: it also reads code that does not
// compile, needs only its own runtime, and follows Java's new versions. The other candidate, java-parser,
// rejects a file at its first error, and its own project has left it for tree-sitter.
// Tokens are the leaves of the syntax tree, and the text between them, because the grammar gives no leaf to
// `@`, `<` and some other signs. A token is named by its text, not by its kind in the grammar, so a misread
// place still has the tokens of its text. Not here: the definition of a copy (tiling.js).
import { parser } from '@lezer/java';

const keywords =
  'abstract assert break byte case catch char class const continue default do double else enum ' +
  'extends final finally float for goto if implements import instanceof int interface long native ' +
  'new null package private protected public return short static strictfp super switch ' +
  'synchronized this throw throws transient try void volatile while';

// `>>` and `>>>` are absent: they are two and three `>`, in a shift as in `List<List<T>>`.
const signs =
  '( ) { } [ ] ; , . ... @ :: -> = == ! != ~ ? : < <= << <<= > >= >>= >>>= && || & &= | |= ^ ^= ' +
  '+ ++ += - -- -= * *= / /= % %=';

/** Kinds of tokens; the code of a kind is its index. `other` is a sign that Java does not have. */
export const kinds = [
  ...['other', 'name', 'number', 'character', 'string', 'boolean'],
  ...['boolean type', ...keywords.split(' '), ...signs.split(' ')],
];

const codeOf = (kind) => kinds.indexOf(kind);
const [other, name] = [codeOf('other'), codeOf('name')];

/** Codes of the tokens that are always spelled the same. */
const fixed = new Map([
  ...[...keywords.split(' '), ...signs.split(' ')].map((text) => [text, codeOf(text)]),
  ...[
    ['boolean', codeOf('boolean type')],
    ['true', codeOf('boolean')],
    ['false', codeOf('boolean')],
  ],
]);

/** Codes of leaves that are one token whatever their text. */
const literals = new Map([
  ['IntegerLiteral', codeOf('number')],
  ['FloatingPointLiteral', codeOf('number')],
  ['CharacterLiteral', codeOf('character')],
  ['StringLiteral', codeOf('string')],
  ['TextBlock', codeOf('string')],
]);

const leftOut = new Set(['LineComment', 'BlockComment', 'ImportDeclaration', 'PackageDeclaration']);

/** Declarations of a Java file; methods as well, since a file of Java 25 needs no class. */
const declarations = new Set([
  ...['ClassDeclaration', 'InterfaceDeclaration', 'EnumDeclaration', 'RecordDeclaration'],
  ...['AnnotationTypeDeclaration', 'ModuleDeclaration', 'MethodDeclaration'],
]);

const word = /^[\p{ID_Start}$_][\p{ID_Continue}$]*/u;

// A word, a sign (a longer one before those that it begins with), or any other mark.
const piece = new RegExp(
  [
    word.source.slice(1),
    ...signs
      .split(' ')
      .sort((a, b) => b.length - a.length)
      .map((sign) => sign.replace(/[^-=!<>:;,@&~%]/g, '\\$&')),
    '\\S',
  ].join('|'),
  'gu',
);

/**
 * Returns the tokens of a Java text, in order, as columns of a table. `codes` are indices of `kinds`;
 * `starts` and `ends` are half-open ranges of the text in UTF-16 units, see `placeOf` for lines. `errorCount`
 * is how often the grammar did not fit, `declarationCount` the number of classes, methods and the like. Text
 * in other languages has tokens too.
 */
export function tokenize(text) {
  const tokens = new TokenTable(text);
  let errorCount = 0;
  let declarationCount = 0;
  let isLeaf = false;
  parser.parse(text).iterate({
    enter({ name: node, from, to, type }) {
      isLeaf = !leftOut.has(node);
      if (!isLeaf) tokens.skip(from, to);
      if (type.isError) errorCount += 1;
      if (declarations.has(node)) declarationCount += 1;
      return isLeaf;
    },
    leave({ name: node, from, to, type }) {
      if (isLeaf && !type.isError) tokens.add(from, to, literals.get(node));
      isLeaf = false;
    },
  });
  return { ...tokens.finish(), errorCount, declarationCount };
}

class TokenTable {
  #text;
  #end = 0; // of what was added or skipped last
  #codes = [];
  #starts = [];
  #ends = [];

  constructor(text) {
    this.#text = text;
  }

  /** One token with this code; without a code, the tokens that stand there. */
  add(from, to, code) {
    this.#addPieces(from);
    if (code === undefined) this.#addPieces(to);
    else this.#push(code, from, to);
  }

  /** No token from here to there. */
  skip(from, to) {
    this.#addPieces(from);
    this.#end = to;
  }

  finish() {
    this.#addPieces(this.#text.length);
    return {
      codes: Uint8Array.from(this.#codes),
      starts: Uint32Array.from(this.#starts),
      ends: Uint32Array.from(this.#ends),
    };
  }

  #addPieces(to) {
    const from = this.#end;
    if (to <= from) return;
    for (const { 0: spelled, index } of this.#text.slice(from, to).matchAll(piece)) {
      const code = fixed.get(spelled) ?? (word.test(spelled) ? name : other);
      this.#push(code, from + index, from + index + spelled.length);
    }
    this.#end = to;
  }

  #push(code, from, to) {
    this.#codes.push(code);
    this.#starts.push(from);
    this.#ends.push(to);
    this.#end = to;
  }
}

/** Returns the start of each line of a text. Java ends lines with `\n`, `\r` or both together. */
export function lineStartsOf(text) {
  const ends = Array.from(text.matchAll(/\r\n?|\n/g), ({ 0: end, index }) => index + end.length);
  return Uint32Array.from([0, ...ends]);
}

/** Line and column of a place in a text, both from 1. */
export function placeOf(lineStarts, offset) {
  let [line, after] = [0, lineStarts.length]; // the line begins at or before the place, `after` later
  while (after - line > 1) {
    const middle = (line + after) >> 1;
    if (lineStarts[middle] <= offset) line = middle;
    else after = middle;
  }
  return { line: line + 1, column: offset - lineStarts[line] + 1 };
}
