// Builds the kernel of guests (worker: { kind: 'vm' }) from Debian's sources of Linux 6.1, with the configuration
// and the patch in crates/enter/guest: node scripts/build-guest-kernel.mjs [path of the kernel]. Nothing of it is
// in the repository.
// Needs: apt-get install linux-source-6.1 flex bison bc libelf-dev patch; without the first it is downloaded.
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { debianFolder, guestKernelPath } from './lib/debian-program.mjs';
import { hasCommand, run } from './lib/run.mjs';

const sources = 'usr/src/linux-source-6.1.tar.xz';
const tools = ['make', 'gcc', 'flex', 'bison', 'bc', 'xz', 'patch', 'strip'];
const config = resolve('crates/enter/guest/kernel.config');
const patch = resolve('crates/enter/guest/idle.patch');
/** Jobs at once: the build must leave the machine usable. */
const jobs = 2;

function fail(reason) {
  console.error(`build-guest-kernel: ${reason}`);
  process.exit(1);
}

async function check(command, args, cwd) {
  const { status, output } = await run(command, args, { cwd, capture: true });
  if (status !== 0) fail(`${command} ${args.join(' ')}:\n${output.slice(-4000)}`);
}

async function findSources() {
  const installed = join('/', sources);
  if (existsSync(installed)) return installed;
  const unpacked = resolve(await debianFolder('linux-source-6.1'), sources);
  return existsSync(unpacked)
    ? unpacked
    : fail('there are no sources: apt-get install linux-source-6.1');
}

for (const tool of tools) {
  if (!(await hasCommand(tool)))
    fail(`there is no ${tool}: apt-get install flex bison bc libelf-dev`);
}
const target = resolve(process.argv[2] ?? guestKernelPath);
const archive = await findSources();
const scratch = mkdtempSync(join(tmpdir(), 'manycore-kernel-'));
try {
  await check('tar', ['--extract', '--file', archive], scratch);
  const tree = join(scratch, 'linux-source-6.1');
  await check('patch', ['--strip=1', '--input', patch], tree);
  await check('make', ['ARCH=um', 'tinyconfig'], tree);
  await check('scripts/kconfig/merge_config.sh', ['-m', '.config', config], tree);
  await check('make', ['ARCH=um', 'olddefconfig'], tree);
  await check('make', ['ARCH=um', `-j${jobs}`, 'linux'], tree);
  await check('strip', ['linux'], tree);
  mkdirSync(dirname(target), { recursive: true });
  // Copied beside and renamed: guests that run keep the old one.
  cpSync(join(tree, 'linux'), `${target}.new`);
  renameSync(`${target}.new`, target);
  console.log(target);
} finally {
  rmSync(scratch, { recursive: true });
}
