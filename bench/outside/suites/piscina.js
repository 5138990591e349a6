// piscina's own tests (they are in its package), on its own code with its pool of workers replaced.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { runChild } from '../lib/children.js';

const adapter = fileURLToPath(new URL('thread-pool.cjs', import.meta.url));
const reporter = new URL('reporter.mjs', import.meta.url).href;

export const piscina = { name: 'piscina 5.3.2', prepare, run };

/** Returns the files of tests. `beginning`: a line of code before the adapter is loaded, or `undefined`. */
function prepare(out, beginning) {
  rmSync(out, { recursive: true, force: true });
  cpSync(fileURLToPath(new URL('../node_modules/piscina', import.meta.url)), out, {
    recursive: true,
  });
  const test = join(out, 'test');
  for (const file of readdirSync(test, { recursive: true })) {
    if (!file.endsWith('.ts')) continue;
    const { outputText } = ts.transpileModule(readFileSync(join(test, file), 'utf8'), {
      compilerOptions: {
        module: ts.ModuleKind.CommonJS,
        target: ts.ScriptTarget.ES2022,
        esModuleInterop: true,
      },
    });
    // Tests name their worker files with `.ts`; there are none after this.
    const code = outputText.replace(/(fixtures\/[\w-]+)\.ts/g, '$1.js');
    writeFileSync(join(test, file.replace(/\.ts$/, '.js')), code);
  }
  if (beginning) replacePool(join(out, 'dist/index.js'), beginning);
  return readdirSync(test)
    .filter((file) => file.endsWith('.test.js'))
    .map((file) => join(test, file));
}

function replacePool(file, beginning) {
  const own = `{
    defaults: kDefaultOptions, errors: errors_1.Errors, isMovable: common_1.isMovable,
    resource: 'Piscina.Task', abortError: (reason) => new abort_1.AbortError(reason),
    transferable: symbols_1.kTransferable, value: symbols_1.kValue, commonState: require.resolve('./common') }`;
  const code = readFileSync(file, 'utf8');
  const changed = code.replace(
    /^class Piscina /m,
    `${beginning}\nThreadPool = require(${JSON.stringify(adapter)})(${own});\n$&`,
  );
  if (changed === code) throw new Error(`${file} has no class Piscina: another version?`);
  writeFileSync(file, changed);
}

/** The results of a file, or of its tests with one name; `isLate` when it did not end. */
async function run(file, { node, name, timeoutMs }) {
  const only =
    name === undefined
      ? []
      : ['--test-name-pattern', `^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`];
  const args = [
    '--test',
    '--test-force-exit',
    '--test-timeout',
    '20000',
    '--test-reporter',
    reporter,
    ...only,
    file,
  ];
  const child = await runChild(node, args, { timeoutMs, cwd: join(file, '../..') });
  const results = child.stdout
    .split('\n')
    .filter((line) => line.startsWith('RESULT '))
    .map((line) => JSON.parse(line.slice('RESULT '.length)))
    .filter((result) => !result.isSkipped);
  return { results, isLate: child.isLate, stderr: child.stderr };
}
