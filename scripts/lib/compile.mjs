// Compiles the TypeScript of src/, test/ and bench/ to dist/, and detects when that is due.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { bundle } from './bundle.mjs';
import { isJoinedFile, joinModules } from './join.mjs';
import { run } from './run.mjs';
import { compiledName, sourceFolders, typeScriptFiles } from './sources.mjs';

const compiler = 'node_modules/typescript/bin/tsc';
/** Exists when the last compilation had no error. */
const soundMark = 'dist/.sound';
/** Marks the begin of the last compilation by its modification time. */
const beginMark = 'dist/.begin';
/** State of the incremental compiler. */
const buildInfo = 'dist/.tsbuildinfo';

export function hasTypeScript() {
  return existsSync(compiler);
}

/** True: a source, or a file that configures the compiler, is newer than the last compilation. */
export function isStale() {
  const begunMs = mtimeMs(beginMark);
  const configured = Math.max(mtimeMs('tsconfig.json'), mtimeMs('package-lock.json'));
  const isPageStale = readdirSync('web').some(
    (name) => mtimeMs(join('web', name)) > mtimeMs('dist/bundle/dashboard-page.js'),
  );
  return (
    isPageStale ||
    typeScriptFiles().some((source) => Math.max(mtimeMs(source), configured) > begunMs) ||
    isIncomplete()
  );
}

function isIncomplete() {
  return typeScriptFiles().some((source) => !existsSync(compiledName(source)));
}

/** The sources that there are, for the mark: one that is gone is in none of the times. */
function sourceList() {
  return typeScriptFiles().join('\n');
}

/** True: dist/ is up to date, and was made without a type error. */
export function isSound() {
  return !isStale() && existsSync(soundMark) && readFileSync(soundMark, 'utf8') === sourceList();
}

/**
 * Runs the compiler and shows its messages. Emits in spite of type errors, so that one part can be tried
 * while another does not compile yet. Removes output whose source is gone.
 */
export async function compileTypeScript() {
  rmSync(soundMark, { force: true });
  if (isIncomplete()) rmSync(buildInfo, { force: true });
  const begun = new Date();
  const sources = sourceList();
  const incremental = ['--incremental', '--tsBuildInfoFile', buildInfo];
  const result = await run(process.execPath, [compiler, '-p', 'tsconfig.json', ...incremental]);
  removeOrphans();
  mkdirSync('dist', { recursive: true });
  writeFileSync(beginMark, '');
  utimesSync(beginMark, begun, begun);
  await Promise.all([bundle(), joinModules()]);
  if (result.status === 0) writeFileSync(soundMark, sources);
  return result;
}

function removeOrphans() {
  for (const folder of sourceFolders) {
    const compiled = join('dist', folder);
    if (!existsSync(compiled)) continue;
    for (const name of readdirSync(compiled, { recursive: true, encoding: 'utf8' })) {
      const source = name.replace(/(?:\.d)?\.(c?)(?:js|js\.map|ts)$/, '.$1ts');
      const isOurs = source !== name && !isJoinedFile(join(folder, name));
      if (!isOurs || existsSync(join(folder, source))) continue;
      rmSync(join(compiled, name));
    }
  }
}

function mtimeMs(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
