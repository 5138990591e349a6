// manycore before it counted anything for metrics: from the history of git, built once, into a cache. The
// newer code with metrics switched off still counts bytes and checks for listeners.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const commit = 'b13fc45';
const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'node_modules/.cache/manycore-before-metrics', commit);
const binaries = `prebuilds/${process.platform}-${process.arch}`;

/** Returns the path of one of its files. */
export const beforeFile = (path) => join(folder, path);

/** True: it has been built. */
export const hasBefore = () => existsSync(folder);

/** Builds it if it is missing. When that fails, prints the cause and leaves nothing there. */
export function buildBefore() {
  if (hasBefore()) return;
  const why = problemOfBuild(`${folder}.${process.pid}`);
  if (why !== undefined) console.log(`! the contender "before" is left out: ${why}`);
}

function problemOfBuild(fresh) {
  mkdirSync(fresh, { recursive: true });
  try {
    const archive = spawnSync('git', ['archive', commit], { cwd: root, maxBuffer: 2 ** 30 });
    if (archive.status !== 0) return `there is no commit ${commit} in the history here`;
    const unpacked = spawnSync('tar', ['-x'], { cwd: fresh, input: archive.stdout });
    if (unpacked.status !== 0) return 'tar cannot unpack it';
    symlinkSync(join(root, 'node_modules'), join(fresh, 'node_modules'));
    console.error(`building manycore as of ${commit}, once`);
    const built = spawnSync(process.execPath, ['scripts/build.mjs'], {
      cwd: fresh,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (built.status !== 0) return `its build ended with ${built.status ?? built.signal}`;
    // A build without the binary has other channels than the one beside it.
    if (existsSync(join(root, binaries)) && !existsSync(join(fresh, binaries))) {
      return 'its native binary cannot be built';
    }
    rmSync(join(fresh, 'target'), { recursive: true, force: true });
    renameSync(fresh, folder);
    return undefined;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
