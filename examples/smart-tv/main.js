// The smart TV: `npm start`, or `node examples/smart-tv/main.js --help`.
//
// A server with a remote control must answer a button at once, and it also decodes pictures, for 90 % of one
// core. The example runs that decoding in the server's event loop, in a worker thread and through `parallel`.
// It presses the play button at a steady rate all the while, and shows the response times.
// docs/guide/smart-tv.md describes it; modes/ holds the code that differs.
import { mkdir } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { relative } from 'node:path';
import { help, readOptions, UsageError } from './options.js';
import { loadPicture, measureDecodeMs } from './picture.js';
import { writeResults } from './results.js';
import { startShow } from './show.js';
import { formatMs, formatTable } from './table.js';

try {
  await main(readOptions(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`smart-tv: ${error.message}`);
  process.exit(2);
}

async function main(options) {
  if (options.help) return console.log(help);
  await makeFolder(options.out);
  const picture = await loadPicture(options.png, options.out);
  const load = measureLoad(picture, options);
  const show = await startShow(options, picture, load);
  const stopping = closeAtSignal(show);
  printSetup(show, options);
  try {
    const results = await show.study(stopping, (text, mode) => console.log(`  ${mode}: ${text}`));
    const paths = await writeResults(options.out, results, show.load);
    console.log(`\n${formatTable(results)}\nplayer: ${show.load.playedBy}\n`);
    for (const path of Object.values(paths)) console.log(relative('', path));
  } catch (error) {
    if (stopping.aborted) return;
    await show.close();
    throw error;
  }
  if (options.once) {
    await show.close();
  } else {
    console.log('\nThe pages stay up, switch modes there. Ctrl-C ends it.');
  }
}

async function makeFolder(path) {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw new UsageError(`--out ${path} cannot be made (${error.code}): give a folder to write to`);
  }
}

/** Returns the load by which decoding takes its share of one core. */
function measureLoad({ bytes, width, height }, { loadPercent, ratePerSecond }) {
  const decodeMs = measureDecodeMs(bytes);
  const intervalMs = decodeMs / (loadPercent / 100);
  return { width, height, loadPercent, ratePerSecond, decodeMs, intervalMs };
}

function printSetup(show, { host, modes, seconds }) {
  const { width, height, decodeMs, intervalMs, loadPercent, playedBy } = show.load;
  console.log(`remote control  ${addresses(host, show.port).join('  ')}`);
  console.log(`TV              http://localhost:${show.port}/tv`);
  console.log(`player          ${playedBy}`);
  console.log(
    `decoding        ${width} x ${height}, ${formatMs(decodeMs)} each, one every ` +
      `${formatMs(intervalMs)}: ${loadPercent} % of one core`,
  );
  console.log(`measuring       ${modes.length} x ${seconds} s\n`);
}

/** Returns the addresses of the remote control: on this machine, and for phones when they can reach it. */
function addresses(host, port) {
  if (host !== '0.0.0.0' && host !== '::') return [`http://${host}:${port}/`];
  const outside = Object.values(networkInterfaces())
    .flat()
    .filter(({ family, internal }) => family === 'IPv4' && !internal);
  return ['localhost', ...outside.map(({ address }) => address)].map(
    (name) => `http://${name}:${port}/`,
  );
}

/** Ctrl-C closes the show; a second one does not wait for that. The signal aborts with the first. */
function closeAtSignal(show) {
  const controller = new AbortController();
  for (const [name, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ]) {
    process.once(name, () => {
      process.once(name, () => process.exit(code));
      process.exitCode = code;
      controller.abort();
      show.close().then(() => process.exit(code));
    });
  }
  return controller.signal;
}
