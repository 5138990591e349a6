// Runs the test suite of another pool, first on its own code, then through the adapter. Prints the tests that
// fail only through the adapter, with the reason in `reasons.js`.
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inTurns } from '../lib/children.js';
import { reasons } from './reasons.js';

const fetched = fileURLToPath(new URL('../node_modules/.fetched/suites', import.meta.url));

export async function measureSuite(suite, { node, manycore, only }) {
  const own = await runAll(suite, join(fetched, `${suite.name}-own`), undefined, { node, only });
  const out = join(fetched, `${suite.name}-adapted`);
  const adapted = await runAll(suite, out, manycore, { node, only }, own);
  return [...own.entries()].map(([name, { isOk }]) => {
    const result = adapted.get(name);
    if (!isOk) return { name, outcome: 'fails by itself', detail: own.get(name).error };
    if (result?.isOk) return { name, outcome: 'same' };
    const reason = reasons.find(({ pool, test }) => suite.name.startsWith(pool) && test.test(name));
    const error = result?.error ?? 'it did not end';
    return {
      name,
      outcome: reason?.outcome ?? 'fails',
      why: reason?.why,
      detail: `${reason?.why ?? ''} [${error}]`,
    };
  });
}

/**
 * Resolves to results by "file: test"; a test with the name of another one of its file gets a number.
 * `manycore`: the module that replaces the pool of workers, or `undefined`.
 */
async function runAll(suite, out, manycore, { node, only }, expected) {
  const files = suite
    .prepare(out, manycore && `process.env.OUTSIDE_MANYCORE = ${JSON.stringify(manycore)};`)
    .filter((file) => only === undefined || file.includes(only));
  const byName = new Map();
  await inTurns(files, 2, async (file) => {
    const { results } = await suite.run(file, { node, timeoutMs: 120_000 });
    for (const result of results) byName.set(keyOf(byName, file, result.name), result);
  });
  // A test that blocks its process ends the rest of its file: those tests run by themselves.
  const missing = [...(expected?.keys() ?? [])].filter((key) => !byName.has(key));
  await inTurns(missing, 2, async (key) => {
    const [file, name] = split(key, files);
    const { results } = await suite.run(file, { node, name, timeoutMs: 30_000 });
    const found = results.find((result) => result.name === name);
    if (found) byName.set(key, found);
  });
  return byName;
}

function keyOf(byName, file, name) {
  const key = `${basename(file)}: ${name}`;
  let count = 1;
  while (byName.has(count === 1 ? key : `${key} #${count}`)) count++;
  return count === 1 ? key : `${key} #${count}`;
}

function split(key, files) {
  const file = files.find((path) => key.startsWith(`${basename(path)}: `));
  return [file, key.slice(basename(file).length + 2).replace(/ #\d+$/, '')];
}
