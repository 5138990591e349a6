// npm run check: every check that runs no tests; CI runs the same. `npm run check -- types lint` runs only
// those steps. Those of cargo run beside the others. The models and valgrind run beside both, and are a command
// of their own, npm run check:native.
import { existsSync } from 'node:fs';
import { checkLock } from './lib/check-lock.mjs';
import { checkPackage } from './lib/check-package.mjs';
import { checkTargets, needsTargets } from './lib/check-targets.mjs';
import { checkWords } from './lib/check-words.mjs';
import { isSound } from './lib/compile.mjs';
import { hasCommand, run } from './lib/run.mjs';
import { runSteps } from './lib/steps.mjs';

const capture = { capture: true, limitMs: 600_000, env: { NO_COLOR: '1' } };
const tool = (name, ...args) => run(`node_modules/.bin/${name}`, args, capture);
const cargo = (args, env = {}) => run('cargo', args, { ...capture, env });
const needsCargo = async () => {
  if (!existsSync('crates/core/Cargo.toml')) return 'no crate here';
  return (await hasCommand('cargo')) ? undefined : 'cargo is not installed';
};

const steps = [
  {
    name: 'types',
    // A compilation without an error has checked the same files with the same options.
    check: () =>
      isSound()
        ? { status: 0, output: '', note: 'checked when dist/ was made' }
        : tool('tsc', '-p', 'tsconfig.json', '--noEmit'),
  },
  { name: 'page-types', check: () => tool('tsc', '-p', 'web/tsconfig.json') },
  {
    name: 'examples',
    check: () => run(process.execPath, ['scripts/check-examples.mjs'], capture),
  },
  { name: 'lint', check: () => tool('biome', 'ci', '--colors=off', '--error-on-warnings', '.') },
  {
    name: 'words',
    needs: () => (existsSync('.git') ? undefined : 'no repository'),
    check: checkWords,
  },
  { name: 'dead-code', check: () => tool('knip') },
  { name: 'lock', check: checkLock },
  { name: 'package', check: checkPackage },
  {
    name: 'api',
    check: () => run(process.execPath, ['scripts/api-report.mjs', '--check'], capture),
  },
  {
    name: 'readme',
    check: () => run(process.execPath, ['scripts/readme-table.mjs', '--check'], capture),
  },
  {
    name: 'evidence',
    check: () => run(process.execPath, ['scripts/evidence.mjs', '--check'], capture),
  },
  { name: 'docs', check: () => tool('typedoc', '--treatWarningsAsErrors', '--logLevel', 'Warn') },
  {
    name: 'rust-format',
    chain: 'cargo',
    needs: needsCargo,
    check: () => cargo(['fmt', '--all', '--check']),
  },
  {
    name: 'clippy',
    chain: 'cargo',
    needs: needsCargo,
    check: () => cargo(['clippy', '--workspace', '--all-targets', '--', '-D', 'warnings']),
  },
  {
    name: 'rust-docs',
    chain: 'cargo',
    needs: needsCargo,
    check: () =>
      cargo(['doc', '--workspace', '--no-deps', '--document-private-items'], {
        RUSTDOCFLAGS: '-D warnings',
      }),
  },
  {
    name: 'rust-targets',
    chain: 'cargo',
    needs: async () => (await needsCargo()) ?? (await needsTargets()),
    check: checkTargets,
  },
  {
    name: 'native',
    chain: 'native',
    needs: needsCargo,
    check: () => run(process.execPath, ['scripts/check-native.mjs'], capture),
  },
];

// Not process.exit(), which would cut off output longer than the pipe.
if ((await runSteps(steps, process.argv.slice(2))) > 0) process.exitCode = 1;
