// npm run build:prebuilds [NAME…]: cross-builds the binaries of all platforms, or of the named ones, into
// prebuilds/. Needs cargo, rustup, zig as the linker (pip install ziglang) and cargo-zigbuild (cargo install
// cargo-zigbuild). `npm run check:prebuilds` tests the result.
import { copyFileSync, mkdirSync } from 'node:fs';
import { builtFiles, crates, glibc, platforms } from './lib/platforms.mjs';
import { hasCommand, run } from './lib/run.mjs';

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(platforms, name));
if (unknown.length > 0) fail(`no such platform: ${unknown}. There are: ${Object.keys(platforms)}`);
if (!(await hasCommand('cargo-zigbuild'))) {
  fail('cargo-zigbuild is not on PATH: cargo install cargo-zigbuild, pip install ziglang');
}
const wanted = names.length > 0 ? names : Object.keys(platforms);
const targets = wanted.map((name) => platforms[name].target);
if ((await run('rustup', ['target', 'add', ...targets])).status !== 0) process.exit(1);
for (const name of wanted) {
  const { target, libc } = platforms[name];
  const version = libc === 'glibc' ? `.${glibc}` : '';
  const packages = crates.flatMap((crate) => ['--package', crate]);
  const flags = ['zigbuild', '--release', '--locked', ...packages];
  flags.push('--target', `${target}${version}`);
  // A library loaded by Node uses Node's C library, not one of its own.
  const env = libc === 'musl' ? { RUSTFLAGS: '-C target-feature=-crt-static' } : {};
  if ((await run('cargo', flags, { env })).status !== 0) process.exit(1);
  const built = `${process.env['CARGO_TARGET_DIR'] ?? 'target'}/${target}/release`;
  mkdirSync(`prebuilds/${name}`, { recursive: true });
  for (const [file, from] of Object.entries(builtFiles)) {
    copyFileSync(`${built}/${from}`, `prebuilds/${name}/${file}`);
  }
}

function fail(reason) {
  console.error(reason);
  process.exit(2);
}
