// The corpus of the plagiarism benchmark: `node bench/corpus/fetch.js`.
//
// The sources of SnakeYAML 1.18, which are 108 Java files, and planted copies of all that are long enough to
// be worth copying. Copies have other names; some also methods in another order, and some also edits. Maven
// fetches the jar, from the place it is configured for. Everything is made in this folder and ignored by git;
// the copies are the same in every run. Below java/ are the files to compare:
//
//   npm run example plagiarism -- bench/corpus/java --planted bench/corpus/planted.json
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tokenize } from '../../examples/plagiarism/java.js';
import { changes, plant } from '../../examples/plagiarism/plant.js';

const artifact = 'org.yaml:snakeyaml:1.18:jar:sources';
const jar = 'snakeyaml-1.18-sources.jar';
const fileCount = 108;

/** Shorter files are a few lines in a class, and many of the library are alike by themselves. */
const leastTokens = 150;

const folder = fileURLToPath(new URL('./', import.meta.url));
const [sources, java] = [join(folder, 'sources'), join(folder, 'java')];

try {
  fetchSources();
  const planted = plantCopies();
  console.log(`${java}: ${fileCount} files of ${artifact} and ${planted.length} copies`);
} catch (error) {
  console.error(`fetch: ${error.message}`);
  process.exit(1);
}

function fetchSources() {
  rmSync(sources, { recursive: true, force: true });
  mkdirSync(sources, { recursive: true });
  const copy = ['-q', '-B', 'dependency:copy', `-Dartifact=${artifact}`];
  run('mvn', [...copy, `-DoutputDirectory=${sources}`], `get ${artifact} from a repository`);
  run('jar', ['xf', jar], `unpack ${jar}`);
  const found = javaFilesIn(sources).length;
  if (found !== fileCount) throw new Error(`${jar} has ${found} Java files, not ${fileCount}`);
}

/** Runs a command in the folder of the sources; `purpose` is part of the message of a failure. */
function run(command, args, purpose) {
  const { status, error, stdout } = spawnSync(command, args, {
    cwd: sources,
    encoding: 'utf8',
    timeout: 300_000,
  });
  if (status === 0) return;
  if (error?.code === 'ENOENT') throw new Error(`${command} is not installed: it is to ${purpose}`);
  const reason = error?.message ?? stdout.match(/^\[ERROR\] (.*)/m)?.[1] ?? `exit code ${status}`;
  throw new Error(`${command} could not ${purpose}: ${reason}`);
}

/** Writes originals and copies, and returns the list of copies with their originals. */
function plantCopies() {
  rmSync(java, { recursive: true, force: true });
  const planted = [];
  for (const [seed, path] of javaFilesIn(sources).entries()) {
    cpSync(join(sources, path), join(java, 'original', path));
    const text = readFileSync(join(sources, path), 'utf8');
    if (tokenize(text).codes.length < leastTokens) continue;
    for (const [last, name] of changes.entries()) {
      const copy = join(java, name, path);
      mkdirSync(dirname(copy), { recursive: true });
      writeFileSync(copy, plant(text, { seed, done: changes.slice(0, last + 1) }));
      planted.push({ original: `original/${path}`, copy: `${name}/${path}` });
    }
  }
  writeFileSync(join(folder, 'planted.json'), `${JSON.stringify(planted, undefined, 1)}\n`);
  return planted;
}

function javaFilesIn(root) {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.java'))
    .map((path) => path.replaceAll('\\', '/'))
    .sort();
}
