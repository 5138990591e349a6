// Pulumi's test closures for its serializer of functions: each runs at home and in a worker, captured and as
// an argument. Allowed outcomes are the same result and a refusal with a code; prints all others.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { inTurns, runChild } from '../lib/children.js';
import { fetchFolder } from '../lib/fetch.js';

const commit = '1b5949891b3cefcb9974752b24a5ecef0acc86c8';
const folder = 'sdk/nodejs/tests/runtime/testdata/closure-tests';
const here = fileURLToPath(new URL('.', import.meta.url));

// Arguments of the functions that would show too little without any.
const argumentsOf = {
  18: [1, 2, 3],
  19: [1, 2, 3],
  31: [1, 2, 3],
  155: [{ whatever: 7 }],
  156: [{ whatever: 7 }],
  157: [{ whatever: 7 }],
  158: [{ whatever: 7 }],
  164: [{ message: 'hello' }],
};
// Ends the process that calls it, at home too.
const notCalled = new Set(['169-Function-captures-V8-intrinsic-js']);
// The state of an imported module is each worker's own (docs/guide): the program sets it after its import.
const stateOfModule = new Set([
  '151-Capture-config-created-on-the-outside',
  '152-Capture-config-created-on-the-inside',
]);

export async function measureClosures({ node, manycore, only, target }) {
  const cases = compile(fetchFolder('pulumi/pulumi', commit, folder), target);
  const chosen = cases.filter(
    ({ name }) => only === undefined || only.split(',').some((part) => matches(name, part)),
  );
  return await inTurns(chosen, 2, async ({ name, file }) => ({
    name,
    ...(await judge(name, file)),
  }));

  async function judge(name, file) {
    if (notCalled.has(name))
      return { outcome: 'refused', detail: 'not called: it ends its process by design' };
    const number = Number.parseInt(name, 10);
    const child = await runChild(node, [file], {
      timeoutMs: 60_000,
      cwd: join(file, '..'),
      env: { OUTSIDE_MANYCORE: manycore, OUTSIDE_ARGS: JSON.stringify(argumentsOf[number] ?? []) },
    });
    if (child.isLate) return { outcome: 'hang', detail: child.stderr };
    const line = child.stdout.split('\n').find((text) => text.startsWith('OUTCOMES '));
    if (line === undefined)
      return { outcome: 'crash', detail: `${child.code} ${child.signal} ${child.stderr}` };
    const { home, captured, argument } = JSON.parse(line.slice('OUTCOMES '.length));
    const verdict = worst([
      compare(home, captured, 'captured'),
      compare(home, argument, 'argument'),
    ]);
    return stateOfModule.has(name) && verdict.outcome === 'wrong'
      ? { ...verdict, outcome: 'documented' }
      : verdict;
  }
}

const matches = (name, part) =>
  /^\d+$/.test(part) ? Number.parseInt(name, 10) === Number(part) : name.includes(part);

function compare(home, worker, way) {
  if (home.text === undefined) return { outcome: 'crash', detail: `at home: ${home.stack}` };
  if (worker.text === home.text) return { outcome: 'same' };
  if (worker.text === undefined) {
    const isRefusal = /^TRANSFER_/.test(worker.code) && worker.code !== 'TRANSFER_CORRUPT';
    return {
      outcome: isRefusal ? 'refused' : 'wrong',
      code: worker.code,
      detail: `${way}: ${worker.code} ${worker.message}`,
    };
  }
  return { outcome: 'wrong', detail: `${way}: ${firstDifference(home.text, worker.text)}` };
}

const order = ['same', 'refused', 'wrong', 'hang', 'crash'];
const worst = (verdicts) =>
  verdicts.reduce((a, b) => (order.indexOf(b.outcome) > order.indexOf(a.outcome) ? b : a));

function firstDifference(home, worker) {
  let start = 0;
  while (home[start] === worker[start]) start++;
  const part = (text) => text.slice(Math.max(0, start - 60), start + 80);
  return `home …${part(home)}… worker …${part(worker)}…`;
}

/**
 * Writes the corpus as CommonJS, compiled by its own tsconfig (ES2016), and appends the driver's call to each
 * case.
 */
function compile(source, target = 'ES2016') {
  const out = fileURLToPath(
    new URL(`../node_modules/.fetched/closures-${target}`, import.meta.url),
  );
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  cpSync(source, out, { recursive: true });
  const packages = join(out, 'node_modules/mockpackage');
  mkdirSync(packages, { recursive: true });
  cpSync(join(out, 'mockpackage-src'), packages, { recursive: true });
  writeFileSync(join(out, 'package.json'), '{"private":true}');
  const options = {
    target: ts.ScriptTarget[target],
    module: ts.ModuleKind.CommonJS,
    esModuleInterop: true,
    experimentalDecorators: true,
    alwaysStrict: true,
  };
  for (const file of readdirSync(join(out, 'cases'), { recursive: true })) {
    if (!file.endsWith('.ts') || file.endsWith('.d.ts')) continue;
    const path = join(out, 'cases', file);
    const { outputText } = ts.transpileModule(readFileSync(path, 'utf8'), {
      compilerOptions: options,
    });
    writeFileSync(path.replace(/\.ts$/, '.js'), outputText);
  }
  const driver = `\nrequire(${JSON.stringify(join(here, 'drive.cjs'))})(module);\n`;
  const names = readdirSync(join(out, 'cases')).sort(
    (a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10),
  );
  return names.map((name) => {
    const file = ['index.js', 'index.cjs']
      .map((base) => join(out, 'cases', name, base))
      .find(existsSync);
    writeFileSync(file, readFileSync(file, 'utf8') + driver);
    return { name, file };
  });
}
