// The plagiarism checker: `npm run example plagiarism -- DIR`, or with --help.
//
// Reads the Java files below a folder, compares each with each and reports the likely copies. The
// computation is in sequential.js and parallel.js, which differ in one line. docs/guide/plagiarism.md
// explains the comparison and the report.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { readJavaFiles } from './files.js';
import { help, readOptions, UsageError } from './options.js';
import { makePage } from './page.js';
import { makeReport } from './report.js';
import { formatReport } from './text.js';

process.stdout.on('error', () => {}); // `| head` stops reading; reports in files are written all the same

try {
  await main(readOptions(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`plagiarism: ${error.message}`);
  process.exitCode = 2;
}

async function main(options) {
  if (options.help) return console.log(help);
  const { folder, threshold, by, leastTokens, limit } = options;
  const outputs = await makePlaces(options);
  const planted = options.planted && (await readPlanted(options.planted));
  const files = await readFiles(folder);
  const texts = files.flatMap(({ text }) => text ?? []);

  const { check } = await import(options.sequential ? './sequential.js' : './parallel.js');
  const startedMs = performance.now();
  const { documents, found } = await check(texts);
  const tookSeconds = (performance.now() - startedMs) / 1000;

  const settings = { folder: relative('', folder) || '.', threshold, by, leastTokens };
  const report = makeReport({ files, documents, found, settings, planted });
  const how = options.sequential ? 'in this process' : 'with manycore';
  console.log(`${formatReport(report, limit)}\n\nCompared in ${tookSeconds.toFixed(2)} s ${how}.`);
  if (outputs.json) await write(outputs.json, `${JSON.stringify(report, undefined, 1)}\n`);
  if (outputs.html) await write(outputs.html, makePage(report, files, limit));
  if (report.planted?.missing.length > 0) process.exitCode = 1;
}

/** Makes the folders of the reports first, so that no comparison is in vain. Resolves to the paths. */
async function makePlaces({ json, html }) {
  const page = html === undefined || html.endsWith('.html') ? html : join(html, 'index.html');
  for (const path of [json, page]) {
    if (path !== undefined) await orRefuse(path, mkdir(dirname(path), { recursive: true }));
  }
  return { json, html: page };
}

async function write(path, content) {
  await orRefuse(path, writeFile(path, content));
  console.log(path);
}

async function orRefuse(path, done) {
  try {
    await done;
  } catch (error) {
    throw new UsageError(`${path} cannot be written (${error.code}): give another place`);
  }
}

async function readFiles(folder) {
  let files;
  try {
    files = await readJavaFiles(folder);
  } catch (error) {
    throw new UsageError(`${folder} cannot be read (${error.code}): give a folder of Java files`);
  }
  const javaCount = files.filter(({ path }) => path.endsWith('.java')).length;
  if (javaCount >= 2) return files;
  const found = javaCount === 0 ? 'no .java file' : 'one .java file';
  throw new UsageError(`${folder} has ${found}: give a folder with at least two`);
}

async function readPlanted(path) {
  try {
    const planted = JSON.parse(await readFile(path, 'utf8'));
    if (planted.every(({ original, copy }) => original.length > 0 && copy.length > 0))
      return planted;
  } catch (error) {
    if (error.code !== undefined) {
      throw new UsageError(`--planted ${path} cannot be read (${error.code}): give a file`);
    }
  }
  throw new UsageError(`--planted ${path} is not a list of { original, copy }: see --help`);
}
