// Writes measured numbers from bench/results into the documents: all bars, and those of other lines of Node,
// into docs/benchmarks.md, six of them into README.md, each between its two marker lines. --check writes
// nothing, and exits with 1 where the pages differ from the stored results. Needs the build (dist/).
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { caseNames, namedOnly } from '../bench/lib/case-names.js';
import { mainLine } from '../bench/lib/machine.js';
import { claimsTable, headlineTable, insertTable, linesTable } from '../dist/bench/report/index.js';

/** Bars of README.md, by case and claim: one for each purpose of the product. */
const headlines = [
  ['round-trip', 'round trip, p50, against the best pool'],
  ['throughput', 'calls/s, 64 waiting, against the best pool'],
  ['lag', 'lateness of light timers, p99, heavy work in the pool against on the loop'],
  ['map', '1,000,000 items of 1 µs, typed array, against the best rival'],
  ['serve', 'kept alive, requests per second, manycore-2x1 against cluster-2'],
  ['loops', 'request between two loops, p50, against a MessagePort (manycore-process)'],
];

const order = [...caseNames, ...namedOnly];
const isCheck = process.argv.includes('--check');
const results = 'bench/results';
const stored = storedIn(results);
const others = namesIn(results)
  .filter((name) => /^node-\d+$/.test(name))
  .map((name) => [`Node ${name.slice(5)}`, name]);
const lines = [
  [`Node ${mainLine}`, '', stored],
  ...others.map(([line, folder]) => [line, `${folder}/`, storedIn(`${results}/${folder}`)]),
];
const ofOthers = lines.slice(1).flatMap(([, , cases]) => cases);
put('docs/benchmarks.md', 'lines', `${linesTable(lines)}\n\n${machinesOf(ofOthers)}`);
put('docs/benchmarks.md', 'bench', claimsTable(stored, machinesOf(stored)));
put('README.md', 'numbers', headlineTable(stored, headlines));

function namesIn(folder) {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function storedIn(folder) {
  return namesIn(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')))
    .sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}

function put(file, name, table) {
  const page = readFileSync(file, 'utf8');
  const written = insertTable(page, name, table);
  if (written === undefined)
    fail(`${file} lacks the lines <!-- ${name}:begin --> and <!-- ${name}:end -->`);
  if (written === page) return;
  if (isCheck) fail(`the numbers in ${file} are not those of bench/results: npm run bench:readme`);
  writeFileSync(file, written);
}

/** Returns one sentence for each machine and build that made results: usually one. */
function machinesOf(results) {
  const madeOn = new Map();
  for (const { name, machine, rounds } of results) {
    const { cpu, cores, memoryGiB, kernel, node, commit, isChanged, date } = machine;
    const where =
      `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${kernel}, Node ${node}, ` +
      `commit ${commit}${isChanged ? ' with changes' : ''}, ${date.slice(0, 10)}`;
    madeOn.set(where, [...(madeOn.get(where) ?? []), `${name} (${rounds} rounds)`]);
  }
  if (madeOn.size === 0) return 'Nothing is measured yet: `npm run bench`.';
  return [...madeOn].map(([where, names]) => `Made on ${where}: ${names.join(', ')}.`).join('\n');
}

function fail(message) {
  console.error(`readme-table: ${message}`);
  process.exit(1);
}
