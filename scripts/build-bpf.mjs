// Compiles trace.bpf.c to trace.bpf.o: the program that the kernel runs for `manycore trace`. The object is
// committed, so that building manycore needs no clang. Run this after each change of the source: node
// scripts/build-bpf.mjs. --check writes nothing, and exits with 1 where the object differs from its source.
// Needs clang 14 (apt-get install clang llvm libbpf-dev): another version makes other bytes, so --check is
// skipped without that clang.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = 'crates/core/src/trace';
const compilerVersion = '14.0';

function run(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return stdout;
  console.error(`build-bpf: ${command}: ${error?.message ?? stderr}`);
  process.exit(1);
}

function hasCompiler() {
  const { stdout } = spawnSync('clang', ['--version'], { encoding: 'utf8' });
  return stdout?.includes(`clang version ${compilerVersion}`) ?? false;
}

/**
 * Compiles `file`. Names of files are cut to the part below the repository, so that every clone makes the
 * same bytes.
 */
function compile(file) {
  const include = `-I/usr/include/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`;
  const flags = ['-g', '-O2', '-target', 'bpf', '-mcpu=v3', '-Wall', '-Werror', include];
  const paths = [`-ffile-prefix-map=${process.cwd()}/=`, '-fdebug-compilation-dir=.'];
  run('clang', [...flags, ...paths, '-c', `${folder}/trace.bpf.c`, '-o', file]);
  run('llvm-strip', ['-g', file]);
  return readFileSync(file);
}

if (!hasCompiler()) {
  const isCheck = process.argv.includes('--check');
  console.error(
    `build-bpf: there is no clang ${compilerVersion}: apt-get install clang llvm libbpf-dev`,
  );
  process.exit(isCheck ? 0 : 1);
}
const scratch = mkdtempSync(join(tmpdir(), 'manycore-bpf-'));
try {
  const fresh = compile(join(scratch, 'trace.bpf.o'));
  const committed = `${folder}/trace.bpf.o`;
  if (!process.argv.includes('--check')) writeFileSync(committed, fresh);
  else if (!readFileSync(committed).equals(fresh)) {
    console.error(`build-bpf: ${committed} differs from its source: node scripts/build-bpf.mjs`);
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true });
}
