// Words of comments in src/ and crates/, and subjects of commits. A comment opens with a noun or a verb, and
// machines do not tell, hear, look or know (CONTRIBUTING.md). words.json has how many comments of each part
// break that now: a part may have fewer, never more. `node scripts/lib/check-words.mjs --write` stores the
// present numbers, and refuses larger ones. Subjects have at most 72 characters.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const bounds = new URL('words.json', import.meta.url);
const maxSubject = 72;
/** Older subjects were written before the rule. */
const checkedCommits = 50;

const openerPattern =
  /^(?:Of|Where|Those|Whoever|What|Who|Whose|Whom|Which|Its|They|These|Such|How|None|Another)\b/;
const personPattern =
  /\b(?:told|tells?|hears?|heard|looks?|looked|knows?|knew|believes?|wants|buries|buried)\b/gi;

/** A step of check.mjs. */
export async function checkWords() {
  const found = count();
  const stored = JSON.parse(readFileSync(bounds, 'utf8'));
  const problems = [...above(found, stored), ...longSubjects()];
  const { openers, persons } = sum(found);
  const note = `${openers} comments open with a pronoun, ${persons} machines act as persons`;
  return { status: problems.length === 0 ? 0 : 1, output: problems.join('\n'), note };
}

/** By part, as `src/pool`. */
function count() {
  const found = {};
  for (const file of git('ls-files', 'src', 'crates')) {
    if (!/\.(?:ts|cts|rs)$/.test(file)) continue;
    const part = file.split('/').slice(0, 2).join('/');
    found[part] ??= { openers: 0, persons: 0 };
    for (const comment of commentsOf(readFileSync(file, 'utf8'))) {
      if (openerPattern.test(comment)) found[part].openers += 1;
      found[part].persons += comment.match(personPattern)?.length ?? 0;
    }
  }
  return found;
}

/** Blocks, and lines that follow each other, without what marks them. */
function commentsOf(text) {
  const blocks = text.match(/\/\*\*?[^]*?\*\/|(?:^[ \t]*\/\/[^\n]*\n)+|[ \t]\/\/[^\n]*/gm) ?? [];
  return blocks.map((block) =>
    block
      .replace(/^[ \t]*(?:\/\*\*?|\/\/[/!]?|\*\/?)|\*\/$/gm, '')
      .replace(/\s+/g, ' ')
      .trim(),
  );
}

function above(found, stored) {
  return Object.entries(found).flatMap(([part, counts]) =>
    Object.entries(counts)
      .filter(([kind, times]) => times > (stored[part]?.[kind] ?? 0))
      .map(([kind, times]) => `${part}: ${times} ${kind}, ${stored[part]?.[kind] ?? 0} before`),
  );
}

function longSubjects() {
  return git('log', `-${checkedCommits}`, '--format=%s')
    .filter((subject) => subject.length > maxSubject)
    .map((subject) => `more than ${maxSubject} characters: ${subject}`);
}

function sum(found) {
  const total = { openers: 0, persons: 0 };
  for (const counts of Object.values(found)) {
    total.openers += counts.openers;
    total.persons += counts.persons;
  }
  return total;
}

function git(...args) {
  return execFileSync('git', args, { encoding: 'utf8' }).trim().split('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv.includes('--write')) {
  const found = count();
  let stored;
  try {
    stored = JSON.parse(readFileSync(bounds, 'utf8'));
  } catch {
    stored = found;
  }
  const problems = above(found, stored);
  if (problems.length > 0) {
    console.error(problems.join('\n'));
    process.exit(1);
  }
  writeFileSync(bounds, `${JSON.stringify(found, undefined, 2)}\n`);
}
