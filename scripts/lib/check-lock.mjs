// Checks that the lock file installs everywhere. npm omits optional packages that it could not fetch when it
// wrote the lock (binaries of other platforms), and `npm ci` then refuses the lock on every machine. Nor may
// it name a registry, so that everyone's own is used.
import { readFileSync } from 'node:fs';

/** A step of check.mjs. */
export async function checkLock() {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const problems = [];
  for (const [path, entry] of Object.entries(packages)) {
    if (entry.resolved) problems.push(`${path} names where it came from: ${entry.resolved}`);
    for (const name of Object.keys(entry.optionalDependencies ?? {})) {
      if (!isLocked(packages, path, name)) problems.push(`${path} needs ${name}, not in the lock`);
    }
  }
  return { status: problems.length === 0 ? 0 : 1, output: problems.join('\n') };
}

/** True: the package is nested below the one that needs it, or in any node_modules further up. */
function isLocked(packages, path, name) {
  for (let at = path; ; at = at.replace(/(^|\/)node_modules\/(?!.*node_modules\/).*$/, '')) {
    if (packages[`${at ? `${at}/` : ''}node_modules/${name}`]?.version) return true;
    if (at === '') return false;
  }
}
