// npm run api: writes api/, the types of each export of the package without their comments. A change of the
// public types so becomes a change of these files, visible to a review. --check exits with 1 where api/
// differs from the sources.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import ts from 'typescript';
import { compileTypeScript, isSound } from './lib/compile.mjs';
import { rollUp } from './lib/roll-up-types.mjs';

const folder = 'api';

if (!isSound()) {
  const { status } = await compileTypeScript();
  if (status !== 0) process.exit(status);
}
const report = new Map();
for (const [name, code] of await rollUp()) {
  report.set(`${name === 'index' ? 'manycore' : name}.d.ts`, withoutComments(code));
}
if (process.argv.includes('--check')) check();
else write();

function withoutComments(code) {
  const source = ts.createSourceFile('api.d.ts', code, ts.ScriptTarget.ESNext);
  const printer = ts.createPrinter({ removeComments: true });
  return printer.printFile(source);
}

function write() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const [name, text] of report) writeFileSync(`${folder}/${name}`, text);
}

function check() {
  const stored = new Map(
    readdirSync(folder).map((name) => [name, readFileSync(`${folder}/${name}`, 'utf8')]),
  );
  const names = new Set([...stored.keys(), ...report.keys()]);
  const others = [...names].filter((name) => stored.get(name) !== report.get(name));
  if (others.length === 0) return;
  console.error(`${folder}/ has other types than the sources: ${others.join(', ')}`);
  console.error('If the change is meant for users: npm run api, and commit the result.');
  process.exitCode = 1;
}
