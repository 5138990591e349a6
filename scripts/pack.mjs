// npm run pack: writes the package that npm publishes, manycore-VERSION.tgz, into this folder.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packStaged, stagePackage } from './lib/stage-package.mjs';

const folder = mkdtempSync(join(tmpdir(), 'manycore-stage-'));
try {
  stagePackage(folder);
  console.log(await packStaged(folder, '.'));
} finally {
  rmSync(folder, { recursive: true });
}
