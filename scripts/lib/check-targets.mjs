// Compiles the Rust code for systems that it does not support: its calls return `Unsupported` there, and the
// package works over other channels. Needs the standard library of each target, which rustup downloads.
import { run } from './run.mjs';

/** Packages by target: the binary for Node needs descriptors, which Windows does not have. */
const packages = {
  'aarch64-apple-darwin': ['--workspace'],
  'x86_64-pc-windows-msvc': ['--package', 'manycore-core'],
};
const targets = Object.keys(packages);
const capture = { capture: true, limitMs: 300_000 };

/** Resolves to the reason why the targets cannot be checked here, or to `undefined`. */
export async function needsTargets() {
  const { status } = await run('rustup', ['target', 'add', ...targets], capture);
  if (status === 127) return 'rustup is not installed';
  return status === 0 ? undefined : `rustup cannot download ${targets.join(', ')}`;
}

export async function checkTargets() {
  for (const [target, which] of Object.entries(packages)) {
    const result = await run('cargo', ['check', ...which, '--target', target], {
      ...capture,
      env: { RUSTFLAGS: '-D warnings', CARGO_TARGET_DIR: 'target/targets' },
    });
    if (result.status !== 0) return result;
  }
  return { status: 0, output: '', note: targets.join(', ') };
}
