// npm run test:runners: the closures of test/runners in each test runner and build tool, with the packed
// package, and a table at the end. The tools are installed once, by the lock files of test/runners/sets, into
// MANYCORE_RUNNERS_CACHE (else a folder of the user's cache). That is outside the repository, because tools
// search for packages and settings in the folders above a program.
//   npm run test:runners -- vitest "jest 30"    only tools whose names contain one of these
//   --details       every refusal with its text    --write   the table into docs/guide/runners.md
// Exits with 1 when a result is wrong, a tool hangs, or a tool is below the bar.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { tools } from '../test/runners/tools.mjs';
import { compileTypeScript, isSound } from './lib/compile.mjs';
import { hostPlatform } from './lib/platforms.mjs';
import { run } from './lib/run.mjs';
import { packStaged, stagePackage } from './lib/stage-package.mjs';

const installLimitMs = 300_000;
const toolLimitMs = 120_000;
/** Minimum number of closures per tool with the same result as in plain Node. */
const bar = 18;
const page = 'docs/guide/runners.md';
const [begin, end] = [
  '<!-- table: npm run test:runners -- --write -->',
  '<!-- end of the table -->',
];

const flags = process.argv.slice(2).filter((each) => each.startsWith('--'));
const parts = process.argv.slice(2).filter((each) => !each.startsWith('--'));
const cache = resolve(
  process.env.MANYCORE_RUNNERS_CACHE ??
    join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'manycore-runners'),
);

if (!flags.includes('--no-build') && !isSound()) {
  const { status } = await compileTypeScript();
  if (status !== 0) process.exit(status);
}
const packed = await pack();
const prepared = new Set();
const rows = [];
for (const tool of tools) {
  if (parts.length > 0 && !parts.some((part) => tool.name.includes(part))) continue;
  rows.push(await runTool(tool));
}
rmSync(packed, { force: true });
report(rows);

/** Packs the tarball that npm would publish. */
async function pack() {
  const folder = join(tmpdir(), `manycore-runners-${process.pid}`);
  stagePackage(join(folder, 'stage'));
  return await packStaged(join(folder, 'stage'), folder);
}

/** Installs a set of tools if that is due, and the packed package in it. */
async function prepareSet(name) {
  const home = join(cache, name);
  if (prepared.has(name)) return home;
  const source = `test/runners/sets/${name}`;
  const lock = readFileSync(join(source, 'package-lock.json'), 'utf8');
  const mark = join(home, 'installed-lock.json');
  if (!existsSync(mark) || readFileSync(mark, 'utf8') !== lock) {
    mkdirSync(home, { recursive: true });
    cpSync(source, home, { recursive: true });
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
    const result = await run('npm', args, { capture: true, cwd: home, limitMs: installLimitMs });
    if (result.status !== 0) throw new Error(`npm ci in ${home} failed:\n${result.output}`);
    writeFileSync(mark, lock);
  }
  const target = join(home, 'node_modules/manycore');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(join(target, 'node_modules'), { recursive: true });
  await run('tar', ['-xzf', packed, '-C', target, '--strip-components=1'], { capture: true });
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const each of Object.keys(dependencies)) {
    symlinkSync(resolve('node_modules', each), join(target, 'node_modules', each));
  }
  const binaries = resolve('prebuilds', hostPlatform());
  if (existsSync(binaries)) {
    mkdirSync(join(target, 'node_modules/@manycore'), { recursive: true });
    symlinkSync(binaries, join(target, 'node_modules/@manycore', hostPlatform()));
  }
  prepared.add(name);
  return home;
}

async function runTool(tool) {
  const home = await prepareSet(tool.set);
  const folder = join(home, 'apps', tool.name.replaceAll(/[^\w]+/g, '-'));
  rmSync(folder, { recursive: true, force: true });
  const out = join(folder, 'found.json');
  const outputs = [];
  let isFailed = false;
  const started = performance.now();
  for (const [command, ...args] of tool.prepare(folder)) {
    const env = { MANYCORE_RUNNERS_OUT: out, NODE_OPTIONS: '', CI: '1' };
    const result = await run(command, args, {
      capture: true,
      cwd: folder,
      env,
      limitMs: toolLimitMs,
    });
    outputs.push(result.output);
    if (result.status === 0) continue;
    isFailed = tool.mustExitWith0 === true;
    break;
  }
  const found = existsSync(out) ? JSON.parse(readFileSync(out, 'utf8')) : undefined;
  const tookS = ((performance.now() - started) / 1000).toFixed(1);
  const kinds = Object.values(found ?? {}).map(({ kind }) => kind);
  const same = kinds.filter((kind) => kind === 'same').length;
  console.log(
    `${tool.name}: ${found ? `${same} of ${kinds.length} the same` : 'NO RESULT'} (${tookS} s)`,
  );
  if (isFailed) console.log(`  ${tool.name} did not exit with 0`);
  if (!found || isFailed) console.log(outputs.join('').split('\n').slice(-40).join('\n'));
  for (const [title, { kind, detail }] of Object.entries(found ?? {})) {
    if (kind === 'same' || (kind === 'refused' && !flags.includes('--details'))) continue;
    console.log(`  ${title}: ${kind} ${detail.replaceAll('\n', '\n    ')}`);
  }
  return { name: tool.name, found, same, kinds, isFailed };
}

function report(all) {
  const text = table(all);
  console.log(`\n${text}`);
  if (flags.includes('--write')) {
    const [before, rest] = readFileSync(page, 'utf8').split(begin);
    const after = rest.split(end)[1];
    writeFileSync(page, `${before}${begin}\n${text}\n${end}${after}`);
  }
  const isBad = ({ found, same, kinds, isFailed }) =>
    !found ||
    isFailed ||
    same < Math.min(bar, kinds.length) ||
    kinds.some((kind) => kind !== 'same' && kind !== 'refused');
  const bad = all.filter(isBad).map(({ name }) => name);
  if (bad.length > 0) console.log(`\nbelow the bar of ${bar}, or wrong: ${bad.join('; ')}`);
  if (bad.length > 0) process.exitCode = 1;
}

function table(all) {
  const lines = all.map(({ name, found, same, kinds }) => {
    if (!found) return `| ${name} | no result | |`;
    const rest = Object.entries(found).filter(([, { kind }]) => kind !== 'same');
    return `| ${name} | ${same} of ${kinds.length} | ${rest.map(([title, { kind }]) => `${title}: ${kind}`).join(', ')} |`;
  });
  return ['| tool | the same as at home | the others |', '|---|---|---|', ...lines].join('\n');
}
