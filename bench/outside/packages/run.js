// Popular packages, used inside a function by import, and as objects that were made at home and captured.
// Each program exists as an ES module and as the CommonJS from TypeScript.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { inTurns, runChild } from '../lib/children.js';
import { uses } from './uses.js';

const driver = fileURLToPath(new URL('drive.cjs', import.meta.url));
const out = fileURLToPath(new URL('../node_modules/.fetched/packages', import.meta.url));

export async function measurePackages({ node, manycore, only }) {
  mkdirSync(out, { recursive: true });
  const chosen = uses.filter(({ name }) => only === undefined || only.split(',').includes(name));
  const programs = chosen.flatMap((use) => ['ESM', 'CommonJS'].flatMap((kind) => write(use, kind)));
  return await inTurns(programs, 2, async ({ name, file, index }) => {
    const child = await runChild(node, [file], {
      timeoutMs: 60_000,
      env: { OUTSIDE_MANYCORE: manycore, OUTSIDE_CASE: String(index) },
    });
    if (child.isLate) return { name, outcome: 'hang', detail: child.stderr };
    const line = child.stdout.split('\n').find((text) => text.startsWith('OUTCOME '));
    if (line === undefined)
      return { name, outcome: 'crash', detail: `${child.code} ${child.signal} ${child.stderr}` };
    return { name, ...JSON.parse(line.slice('OUTCOME '.length)) };
  });
}

/** Writes the program of a package and returns its cases: the use inside, then each object. */
function write({ name, imports, inside, objects }, kind) {
  const entries = Object.entries(objects);
  const source = [
    imports,
    `import drive from ${JSON.stringify(driver)};`,
    ...entries.map(([, [make]], index) => `const object${index} = ${make};`),
    `const inside = () => ${inside};`,
    `drive([inside, ${entries.map(([, [, use]], index) => `() => ${use.replace(/\bit\b/g, `object${index}`)}`).join(', ')}]);`,
  ].join('\n');
  const file = join(out, `${name}.${kind === 'ESM' ? 'mjs' : 'cjs'}`);
  writeFileSync(file, kind === 'ESM' ? source : commonJs(source));
  return [`inside`, ...entries.map(([object]) => `object ${object}`)].map((what, index) => ({
    name: `${kind} ${name} ${what}`,
    file,
    index,
  }));
}

const commonJs = (source) =>
  ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.CommonJS,
      esModuleInterop: true,
    },
  }).outputText;
