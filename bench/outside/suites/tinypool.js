// tinypool's own tests (from its repository), on its own code with its pool of workers replaced.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runChild } from '../lib/children.js';
import { fetchFolder } from '../lib/fetch.js';

const commit = 'abc247f85cba0309e3f1e5655db1837a2a1c2483'; // 2.1.0, the newest with its tests
const adapter = fileURLToPath(new URL('thread-pool.cjs', import.meta.url));
const modules = fileURLToPath(new URL('../node_modules', import.meta.url));

export const tinypool = { name: 'tinypool 2.2.0', prepare, run };

/** Returns the files of tests. `beginning`: a line of code before the adapter is loaded, or `undefined`. */
function prepare(out, beginning) {
  rmSync(out, { recursive: true, force: true });
  cpSync(join(modules, 'tinypool'), out, { recursive: true });
  cpSync(fetchFolder('tinylibs/tinypool', commit, 'test'), join(out, 'test'), { recursive: true });
  const alias = JSON.stringify({ tinypool: join(out, 'dist/index.js') });
  const config = `export default { resolve: { alias: ${alias} }, test: { globals: true, isolate: false, pool: 'forks', exclude: [], testTimeout: 20000 } };\n`;
  writeFileSync(join(out, 'vitest.config.js'), config);
  if (beginning) replacePool(join(out, 'dist/index.js'), beginning);
  return readdirSync(join(out, 'test'))
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join(out, 'test', file));
}

function replacePool(file, beginning) {
  const own = `{
    defaults: kDefaultOptions, errors: Errors, isMovable, resource: 'Tinypool.Task',
    abortError: () => new AbortError(), cancelError: () => new CancelError(),
    transferable: kTransferable, value: kValue, isReopened: true,
    idVariable: 'TINYPOOL_WORKER_ID' }`;
  const code = readFileSync(file, 'utf8');
  const loading = `${beginning}\nThreadPool = (await import('node:module')).createRequire(import.meta.url)(${JSON.stringify(adapter)})(${own});`;
  const changed = code.replace(/^var Tinypool = class/m, `${loading}\n$&`);
  if (changed === code) throw new Error(`${file} has no class Tinypool: another version?`);
  writeFileSync(file, changed);
}

async function run(file, { node, name, timeoutMs }) {
  const folder = join(file, '../..');
  const report = join(folder, `report-${process.hrtime.bigint()}.json`);
  const only = name === undefined ? [] : ['-t', `^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`];
  const args = [
    join(modules, 'vitest/vitest.mjs'),
    'run',
    '--reporter',
    'json',
    '--outputFile',
    report,
    ...only,
    file,
  ];
  const child = await runChild(node, args, { timeoutMs, cwd: folder });
  if (!existsSync(report)) return { results: [], isLate: child.isLate, stderr: child.stderr };
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const results = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'passed' || status === 'failed')
    .map(({ fullName, status, failureMessages }) => ({
      name: fullName,
      isOk: status === 'passed',
      error: failureMessages?.[0],
    }));
  return { results, isLate: child.isLate, stderr: child.stderr };
}
