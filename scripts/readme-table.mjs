// Writes the table of measured numbers in README.md from bench/results/*.json, between the markers
// <!-- bench:begin --> and <!-- bench:end -->. With --check nothing is written, and the exit code
// says whether the page is in step with the stored results. Needs the build (dist/).
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { caseNames, namedOnly } from '../bench/lib/case-names.js';
import { insertTable, readmeTable } from '../dist/bench/report/index.js';

const order = [...caseNames, ...namedOnly];
const isCheck = process.argv.includes('--check');
const stored = (existsSync('bench/results') ? readdirSync('bench/results') : [])
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(`bench/results/${name}`, 'utf8')))
  .sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
const page = readFileSync('README.md', 'utf8');
const written = insertTable(page, readmeTable(stored, machinesOf(stored)));
if (written === undefined)
  fail('README.md lacks the lines <!-- bench:begin --> and <!-- bench:end -->');
if (written !== page) {
  if (isCheck)
    fail('the numbers in README.md are not those of bench/results: npm run bench:readme');
  writeFileSync('README.md', written);
}

/** One sentence for each machine and build that made results: usually one. */
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
