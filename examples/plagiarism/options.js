// The command line: what each flag means, and one sentence for each way to get it wrong.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** A mistake of the person at the command line: printed as one sentence, without a stack. */
export class UsageError extends Error {}

const sample = fileURLToPath(new URL('./sample', import.meta.url));

// Below this share, pairs may be missing: compare.js drops what can hardly reach it.
const leastThreshold = 0.1;

const flags = {
  json: { type: 'string' },
  html: { type: 'string' },
  threshold: { type: 'string', default: '0.3' },
  by: { type: 'string', default: 'similarity' },
  'least-tokens': { type: 'string', default: '100' },
  limit: { type: 'string', default: '20' },
  planted: { type: 'string' },
  sequential: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
};

export const help = `Finds programs that were copied from each other, whatever their names and comments say.

  npm run example plagiarism -- DIR      compares the .java files below DIR, each with each
  npm run example plagiarism             the same with a small sample

  --json FILE       the whole report as JSON
  --html PATH       the report as a page: a file that ends in .html, or a folder for index.html
  --threshold N     the share of two programs that must be alike, 0.1 to 1     (0.3)
  --by MEASURE      similarity, or containment: the share of the smaller one   (similarity)
  --least-tokens N  that a pair must have in common; 100 are some ten lines    (100)
  --limit N         of pairs in the text and on the page                       (20)
  --planted FILE    checks that the pairs in this file are found: JSON, [{ original, copy }, …]
  --sequential      in this process alone, as a yardstick
  --help
`;

/** The options of a command line, all filled in. Throws a UsageError. */
export function readOptions(args) {
  const { values, positionals } = parse(args);
  if (positionals.length > 1) {
    throw new UsageError(
      `give one folder, not ${positionals.length}: "${positionals[1]}" is too much`,
    );
  }
  return {
    ...values,
    folder: positionals[0] ?? sample,
    threshold: number('threshold', values.threshold, leastThreshold, 1),
    by: oneOf('by', values.by, ['similarity', 'containment']),
    leastTokens: integer('least-tokens', values['least-tokens'], 1, 1_000_000),
    limit: integer('limit', values.limit, 1, 10_000),
  };
}

function parse(args) {
  try {
    return parseArgs({ args, options: flags, allowPositionals: true });
  } catch (error) {
    // Node explains in several sentences; the first names the mistake.
    throw new UsageError(`${error.message.split(/\. |\n/)[0].replace(/\.$/, '')}: see --help`);
  }
}

function number(flag, text, least, most) {
  const value = Number(text);
  if (text.trim() !== '' && value >= least && value <= most) return value;
  throw new UsageError(`--${flag} is "${text}": give a number from ${least} to ${most}`);
}

function integer(flag, text, least, most) {
  const value = number(flag, text, least, most);
  if (Number.isInteger(value)) return value;
  throw new UsageError(`--${flag} is "${text}": give a whole number`);
}

function oneOf(flag, text, known) {
  if (known.includes(text)) return text;
  throw new UsageError(`--${flag} does not know "${text}": give one of ${known.join(', ')}`);
}
