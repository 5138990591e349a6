// Builds everything: TypeScript always, the native binary where cargo is there. `npm ci` runs it as
// `prepare`; without the development packages (npm ci --omit=dev) there is nothing to build with, and
// the installation goes on.
import { existsSync } from 'node:fs';
import { compileTypeScript, hasTypeScript } from './lib/compile.mjs';
import { rollUpTypes } from './lib/roll-up-types.mjs';
import { run } from './lib/run.mjs';

const note = (text) => console.error(`manycore: ${text}`);

if (!hasTypeScript()) {
  note('typescript is not installed (npm ci --omit=dev), nothing was built');
  process.exit(0);
}
const types = await compileTypeScript();
if (types.status !== 0) process.exit(types.status);
await rollUpTypes();
if (existsSync('scripts/build-native.mjs')) {
  const native = await run(process.execPath, ['scripts/build-native.mjs']);
  process.exit(native.status);
}
