// The documents against the repository: links lead somewhere, commands exist.

import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { test } from 'node:test';
import { filesBelow, readRepositoryFile, repositoryHas } from './support/repository.js';

const pages = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'],
  ...['docs', 'bench', 'examples'].flatMap((folder) => filesBelow(folder, '.md')),
].filter((page) => !page.startsWith('docs/api/'));

/** What a heading is called in links to it: as on GitHub. */
function anchorsOf(page: string): Set<string> {
  const headings = readRepositoryFile(page).match(/^#{1,6} .*$/gm) ?? [];
  return new Set(
    headings.map((heading) =>
      heading
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Targets of links that stay in the repository. */
function linksOf(page: string): string[] {
  const text = readRepositoryFile(page).replace(/```.*?```/gs, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? '');
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

test('every link between the documents leads to a file and a heading that are there', () => {
  const broken = pages.flatMap((page) =>
    linksOf(page)
      .filter((target) => {
        const [path = '', anchor] = target.split('#');
        const file = path === '' ? page : posix.join(posix.dirname(page), path);
        if (!repositoryHas(file)) return true;
        return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).has(anchor);
      })
      .map((target) => `${page}: ${target}`),
  );
  assert.deepEqual(broken, []);
});

test('the sidebar of the site has every guide and design page', () => {
  const config = readRepositoryFile('docs/.vitepress/config.mts');
  for (const folder of ['guide', 'design']) {
    const shown = [...config.matchAll(new RegExp(`\\b${folder}\\('[^']*', '([^']+)'\\)`, 'g'))];
    const names = filesBelow(`docs/${folder}`, '.md').map((page) => posix.basename(page, '.md'));
    assert.deepEqual(shown.map(([, name]) => name).sort(), names.sort());
  }
});

test('every npm script that a document names exists', () => {
  const manifest: unknown = JSON.parse(readRepositoryFile('package.json'));
  assert.ok(typeof manifest === 'object' && manifest !== null && 'scripts' in manifest);
  const scripts = Object.keys(manifest.scripts ?? {});
  const unknown = pages.flatMap((page) =>
    [...readRepositoryFile(page).matchAll(/npm run ([a-z:-]+)/g)]
      .map(([, name]) => name ?? '')
      .filter((name) => !scripts.includes(name))
      .map((name) => `${page}: npm run ${name}`),
  );
  assert.deepEqual(unknown, []);
});
