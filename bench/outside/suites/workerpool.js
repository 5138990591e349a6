// workerpool's own tests of its pool (from its repository), with that class replaced.
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runChild } from '../lib/children.js';
import { fetchFolder } from '../lib/fetch.js';

const commit = '601124cf86602c1ac88c273a8f99e9c40bea0f16'; // 10.0.3
const modules = fileURLToPath(new URL('../node_modules', import.meta.url));
const adapter = (name) => fileURLToPath(new URL(name, import.meta.url));

export const workerpool = { name: 'workerpool 10.0.3', prepare, run };

/** Returns the files of tests. `beginning`: a line of code before the adapter is loaded; none: as they are. */
function prepare(out, beginning) {
  rmSync(out, { recursive: true, force: true });
  cpSync(join(modules, 'workerpool'), out, { recursive: true });
  cpSync(fetchFolder('josdejong/workerpool', commit, 'test'), join(out, 'test'), {
    recursive: true,
  });
  if (beginning) {
    writeFileSync(
      join(out, 'src/Pool.js'),
      `${beginning}\nmodule.exports = require(${JSON.stringify(adapter('worker-pool.cjs'))})(require('./Promise').Promise, require('./queues'));\n`,
    );
    writeFileSync(
      join(out, 'src/worker.js'),
      `module.exports = require(${JSON.stringify(adapter('worker-methods.cjs'))});\n`,
    );
  }
  return [join(out, 'test/Pool.test.js')];
}

async function run(file, { node, name, timeoutMs }) {
  const folder = join(file, '../..');
  const report = join(folder, `report-${process.hrtime.bigint()}.json`);
  const only = name === undefined ? [] : ['--fgrep', name];
  const args = [
    join(modules, 'mocha/bin/mocha.js'),
    '--exit',
    '--timeout',
    '20000',
    '--reporter',
    'json',
    '--reporter-option',
    `output=${report}`,
    ...only,
    file,
  ];
  const child = await runChild(node, args, { timeoutMs, cwd: folder });
  if (!existsSync(report)) return { results: [], isLate: child.isLate, stderr: child.stderr };
  const { passes, failures } = JSON.parse(readFileSync(report, 'utf8'));
  const results = [
    ...passes.map(({ fullTitle }) => ({ name: fullTitle, isOk: true })),
    ...failures.map(({ fullTitle, err }) => ({ name: fullTitle, isOk: false, error: err.message })),
  ];
  return { results, isLate: child.isLate, stderr: child.stderr };
}
