// Builds everything: TypeScript always, the native binary where cargo is there.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const tsc = 'node_modules/typescript/bin/tsc';
if (!existsSync(tsc)) {
  console.error('manycore: typescript is not installed, nothing was built (npm ci without --omit=dev)');
  process.exit(0);
}
const types = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.json'], { stdio: 'inherit' });
if (types.status !== 0) process.exit(types.status ?? 1);
if (existsSync('scripts/build-native.mjs')) {
  const native = spawnSync(process.execPath, ['scripts/build-native.mjs'], { stdio: 'inherit' });
  process.exit(native.status ?? 1);
}
