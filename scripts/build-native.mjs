// Builds the native binary with cargo, at the path from which src/native.ts loads it. Never fails an
// installation: without cargo, or when the build fails, it prints one line with the cause, and manycore works
// over its other channels.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtFiles, crates, hostPlatform } from './lib/platforms.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** The files of a package by their names in cargo's folder. Other systems have the addon alone. */
const filesOf = { linux: builtFiles, darwin: { 'manycore.node': 'libmanycore_node.dylib' } };

function skip(reason) {
  console.error(
    `manycore: no native binary (${reason}); shared memory is off, everything else works. ` +
      'With Rust from https://rustup.rs, "npm run build:native" makes it.',
  );
  process.exit(0);
}

const files = filesOf[process.platform];
if (files === undefined) skip(`${process.platform} is not supported`);
const probe = spawnSync('cargo', ['--version'], { encoding: 'utf8' });
if (probe.error !== undefined || probe.status !== 0) skip('cargo is not on PATH');
const names = process.platform === 'linux' ? crates : ['manycore-node'];
const packages = names.flatMap((name) => ['-p', name]);
const build = spawnSync('cargo', ['build', '--release', '--locked', ...packages], {
  cwd: root,
  stdio: ['ignore', 'inherit', 'inherit'],
});
if (build.status !== 0) skip(`cargo build ended with status ${build.status ?? build.signal}`);

const targetFolder = process.env['CARGO_TARGET_DIR'] ?? join(root, 'target');
const folder = join(root, 'prebuilds', hostPlatform());
mkdirSync(folder, { recursive: true });
// Copied beside and renamed: a process that has the old binary mapped keeps it.
function install(built, name) {
  const fresh = join(folder, `.${process.pid}.${name}`);
  copyFileSync(join(targetFolder, 'release', built), fresh);
  renameSync(fresh, join(folder, name));
}
for (const [name, built] of Object.entries(files)) install(built, name);
