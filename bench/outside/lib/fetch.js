// Fetches test data of other repositories: one folder at one commit, into `node_modules/.fetched`, which git
// ignores. OUTSIDE_MIRRORS names a folder of clones (`owner+name/repo`) to use instead of GitHub.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const fetched = fileURLToPath(new URL('../node_modules/.fetched', import.meta.url));

/**
 * Returns the path of `folder` of `repository` ("owner/name") at `commit`; fetches it at the first call, or only
 * `parts` of it.
 */
export function fetchFolder(repository, commit, folder, parts = [folder]) {
  const into = join(fetched, `${repository.replace('/', '+')}@${commit}`);
  if (existsSync(into)) return join(into, folder);
  console.error(`fetching ${repository} at ${commit}, once`);
  const work = mkdtempSync(join(tmpdir(), 'outside-'));
  try {
    const gitDir = gitDirOf(repository, commit, work);
    const files = join(work, 'files');
    mkdirSync(files);
    // A tar on disk, not a pipe: the archive of a partial clone can end with an error after our folder.
    const tar = join(work, 'files.tar');
    git(gitDir, 'archive', '--output', tar, commit, ...parts);
    execFileSync('tar', ['xf', tar, '-C', files]);
    mkdirSync(dirname(into), { recursive: true });
    renameSync(files, into);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return join(into, folder);
}

function gitDirOf(repository, commit, work) {
  const mirrors = process.env.OUTSIDE_MIRRORS;
  if (mirrors !== undefined) return join(mirrors, repository.replace('/', '+'), 'repo');
  const clone = join(work, 'clone');
  execFileSync('git', ['init', '--quiet', '--bare', clone]);
  git(clone, 'remote', 'add', 'origin', `https://github.com/${repository}.git`);
  git(clone, 'config', 'extensions.partialClone', 'origin');
  git(clone, 'fetch', '--quiet', '--depth', '1', '--filter=blob:none', 'origin', commit);
  return clone;
}

const git = (gitDir, ...args) =>
  execFileSync('git', ['--git-dir', gitDir, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
