// Builds everything: TypeScript always, the native binary when cargo is installed. `npm ci` runs it as
// `prepare`. Without the development packages (npm ci --omit=dev) it builds nothing and exits with 0.
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
