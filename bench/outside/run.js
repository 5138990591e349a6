// Runs manycore on the tests of other projects: `node bench/outside/run.js
// [closures|packages|piscina|tinypool|workerpool|node-tests …]`. Prints results that differ from those at home,
// and writes `results/NAME.json`, unless only a part ran (`--only`).
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ensureInstalled } from '../lib/install.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    node: { type: 'string', default: process.execPath },
    only: { type: 'string' },
    target: { type: 'string' },
    manycore: {
      type: 'string',
      default: new URL('../../dist/src/public.js', import.meta.url).href,
    },
  },
});

const suite = async (pool) => {
  const { measureSuite } = await import('./suites/run.js');
  return (options) => measureSuite(pool, options);
};
const measures = {
  closures: async () => (await import('./closures/run.js')).measureClosures,
  packages: async () => (await import('./packages/run.js')).measurePackages,
  piscina: async () => suite((await import('./suites/piscina.js')).piscina),
  tinypool: async () => suite((await import('./suites/tinypool.js')).tinypool),
  workerpool: async () => suite((await import('./suites/workerpool.js')).workerpool),
  'node-tests': async () => (await import('./node-tests/run.js')).measureNodeTests,
};

ensureInstalled(fileURLToPath(new URL('.', import.meta.url)), 'typescript', 'install');
for (const name of positionals.length > 0 ? positionals : Object.keys(measures)) {
  const measure = await measures[name]();
  const rows = await measure(values);
  const counts = {};
  for (const { name: row, outcome, detail } of rows) {
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    if (outcome !== 'same') console.log(`${outcome}\t${row}\t${detail?.slice(0, 500)}`);
  }
  console.log(name, counts);
  if (values.only === undefined && values.target === undefined) store(name, counts, rows);
}

/** Writes all differences, without details, which contain paths of this machine. */
function store(name, counts, rows) {
  const others = rows.filter(({ outcome }) => outcome !== 'same');
  const result = {
    node: execFileSync(values.node, ['--version'], { encoding: 'utf8' }).trim(),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    counts,
    cases: others.map(({ name: row, outcome, code, why }) => ({ name: row, outcome, code, why })),
  };
  mkdirSync(new URL('results/', import.meta.url), { recursive: true });
  writeFileSync(
    new URL(`results/${name}.json`, import.meta.url),
    `${JSON.stringify(result, null, 2)}\n`,
  );
}
