// Checks the words of comments, and subjects of commits. A comment opens with a noun or a verb, and machines
// do no mental work (CONTRIBUTING.md). Only the question of a benchmark's first line may open with any word.
// Subjects have at most 72 characters. Not checked: other tests than their support.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const maxSubject = 72;
/** Older subjects were written before the rule. */
const checkedCommits = 50;

const checkedFolders = ['src', 'crates', 'bench', 'examples', 'scripts', 'test/support', 'web'];
const sourcePattern = /\.(?:[cm]?[jt]s|tsx|rs)$/;

const openerPattern =
  /^(?:Of|Where|Whether|Those|Whoever|What|Who|Whose|Whom|Which|Its|They|These|Such|How|None|Another)\b/;
const personPattern =
  /\b(?:told|tells?|hears?|heard|looks?|looked|knows?|knew|believes?|wants|buries|buried)\b/i;

/** A step of check.mjs. */
export async function checkWords() {
  const files = git('ls-files', ...checkedFolders).filter((file) => sourcePattern.test(file));
  const problems = [...files.flatMap(badComments), ...longSubjects()];
  return { status: problems.length === 0 ? 0 : 1, output: problems.join('\n') };
}

function badComments(file) {
  return commentsOf(readFileSync(file, 'utf8')).flatMap((comment, at) => {
    const isQuestion = at === 0 && file.startsWith('bench/cases/');
    const [opener] = (!isQuestion && openerPattern.exec(comment)) || [];
    const [person] = personPattern.exec(comment) ?? [];
    const excerpt = comment.slice(0, 80);
    if (opener !== undefined) return [`${file}: opens with "${opener}": ${excerpt}`];
    return person === undefined ? [] : [`${file}: a machine as a person, "${person}": ${excerpt}`];
  });
}

/** Returns the text of each block comment, and of each run of line comments, without its markers. */
function commentsOf(text) {
  const blocks = text.match(/\/\*\*?[^]*?\*\/|(?:^[ \t]*\/\/[^\n]*\n)+|[ \t]\/\/[^\n]*/gm) ?? [];
  return blocks.map((block) =>
    block
      .replace(/^[ \t]*(?:\/\*\*?|\/\/[/!]?|\*\/?)|\*\/$/gm, '')
      .replace(/\s+/g, ' ')
      .trim(),
  );
}

function longSubjects() {
  return git('log', `-${checkedCommits}`, '--format=%s')
    .filter((subject) => subject.length > maxSubject)
    .map((subject) => `more than ${maxSubject} characters: ${subject}`);
}

function git(...args) {
  return execFileSync('git', args, { encoding: 'utf8' }).trim().split('\n');
}
