// The command line: what each flag means, and one sentence for each way to get it wrong.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { modes } from './modes/index.js';
import { playerNames } from './players/index.js';

/** A mistake of the person at the command line: printed as one sentence, without a stack. */
export class UsageError extends Error {}

const flags = {
  png: { type: 'string' },
  port: { type: 'string' },
  host: { type: 'string' },
  seconds: { type: 'string' },
  rate: { type: 'string' },
  load: { type: 'string' },
  modes: { type: 'string' },
  player: { type: 'string' },
  out: { type: 'string' },
  once: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
};

export const help = `A TV with a remote control, whose server also decodes pictures.

  npm start                  measures every mode, then stays up until Ctrl-C
  npm start -- --once        measures every mode and exits

  --png FILE      the picture to decode        (one of 1920 x 1080, drawn by the example)
  --load PERCENT  of one core, for decoding    (90)
  --modes LIST    of ${Object.keys(modes).join(', ')}
                                               (all of them)
  --seconds N     of presses in each mode      (8)
  --rate N        presses in a second          (40)
  --player NAME   ${playerNames.join(', ')}   (the first that is installed)
  --port N        0 takes any free port        (8080; with --once any free port)
  --host ADDRESS  127.0.0.1 keeps phones out   (0.0.0.0; with --once 127.0.0.1)
  --out FOLDER    for the table as JSON, the plot and the picture
                                               (examples/smart-tv/results)
  --help
`;

/** The options of a command line, all filled in. Throws a UsageError. */
export function readOptions(args) {
  const given = parse(args);
  const once = given.once ?? false;
  return {
    help: given.help ?? false,
    once,
    png: given.png,
    // undefined: 8080, or any free port when that one is in use.
    port: given.port === undefined ? (once ? 0 : undefined) : integer('port', given.port, 0, 65535),
    host: given.host ?? (once ? '127.0.0.1' : '0.0.0.0'),
    seconds: number('seconds', given.seconds ?? '8', 0.5, 3600),
    ratePerSecond: number('rate', given.rate ?? '40', 1, 500),
    loadPercent: number('load', given.load ?? '90', 1, 100),
    modes: list('modes', given.modes ?? Object.keys(modes).join(), Object.keys(modes)),
    player: given.player === undefined ? undefined : oneOf('player', given.player, playerNames),
    out: given.out ?? fileURLToPath(new URL('./results/', import.meta.url)),
  };
}

function parse(args) {
  try {
    return parseArgs({ args, options: flags }).values;
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

/** Returns names out of `known`, in the order of `known`, each once. */
function list(flag, text, known) {
  const wanted = text.split(',').map((name) => oneOf(flag, name.trim(), known));
  return known.filter((name) => wanted.includes(name));
}
