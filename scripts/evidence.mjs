// Writes docs/evidence.md and its pictures from bench/results/*.json. --check writes nothing, and exits with
// 1 where they differ from the stored results. Needs the build (dist/).
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { evidenceCases, evidenceOf } from '../dist/bench/report/index.js';
import { replaceFile } from '../dist/src/lib/files/replace-file.js';

const results = evidenceCases
  .map((name) => `bench/results/${name}.json`)
  .filter(existsSync)
  .map((file) => JSON.parse(readFileSync(file, 'utf8')));
const { page, pictures } = evidenceOf(results);
mkdirSync('docs/evidence', { recursive: true });
const files = { 'docs/evidence.md': page };
for (const [name, text] of Object.entries(pictures)) files[`docs/evidence/${name}`] = text;
for (const name of readdirSync('docs/evidence')) files[`docs/evidence/${name}`] ??= undefined;
for (const [file, text] of Object.entries(files)) {
  if (text !== undefined && existsSync(file) && readFileSync(file, 'utf8') === text) continue;
  if (process.argv.includes('--check')) {
    console.error(`evidence: ${file} differs from bench/results: npm run readme`);
    process.exit(1);
  }
  if (text === undefined) rmSync(file);
  else replaceFile(file, text);
}
