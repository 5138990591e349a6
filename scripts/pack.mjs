// npm run pack: writes the packages for npm into this folder: manycore-VERSION.tgz, and for each platform
// whose binaries are in prebuilds/, manycore-PLATFORM-VERSION.tgz.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packStaged, stagePackage, stagePlatforms } from './lib/stage-package.mjs';

const folder = mkdtempSync(join(tmpdir(), 'manycore-stage-'));
try {
  stagePackage(join(folder, 'manycore'));
  const names = stagePlatforms(folder);
  for (const name of ['manycore', ...names]) console.log(await packStaged(join(folder, name), '.'));
} finally {
  rmSync(folder, { recursive: true });
}
