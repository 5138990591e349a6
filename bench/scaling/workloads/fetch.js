// Fetches what the workloads need that is not in the repository.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { hasCorpus } from './checker.js';
import { workloads } from './index.js';

/** All workloads by name. The checker is left out, with a message, where its Java files cannot be fetched. */
export function fetchWorkloads() {
  if (!hasCorpus()) {
    const fetch = fileURLToPath(new URL('../../corpus/fetch.js', import.meta.url));
    spawnSync(process.execPath, [fetch], { stdio: ['ignore', 'ignore', 'inherit'] });
  }
  if (!hasCorpus()) console.log('! the checker is left out: node bench/corpus/fetch.js prints why');
  const { checker, ...others } = workloads;
  return hasCorpus() ? workloads : others;
}
