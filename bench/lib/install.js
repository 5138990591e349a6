// The rivals of a folder, from its own package.json and lock: installed once, no part of the product.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `marker`: a path in node_modules that is there when all is. `how`: `install` where the lock lacks binaries of
 * other platforms, for which `ci` refuses it.
 */
export function ensureInstalled(folder, marker, how = 'ci') {
  if (existsSync(join(folder, 'node_modules', marker))) return;
  console.error(`installing the rivals (${folder}), once`);
  execFileSync('npm', [how, '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
