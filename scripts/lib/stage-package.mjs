// What npm packs, in a folder of its own: the bundle, the binaries, the documents that users read, and a
// package.json without what only a checkout needs (scripts, development packages). Needs the build (dist/).
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from './run.mjs';

const documents = ['README.md', 'CHANGELOG.md', 'LICENSE', 'docs/errors.md', 'docs/metrics.md'];
const ofCheckout = ['private', 'scripts', 'devDependencies'];

/** Empties `folder`, writes the package there, and returns its manifest. */
export function stagePackage(folder) {
  rmSync(folder, { recursive: true, force: true });
  const guides = readdirSync('docs/guide').map((name) => `docs/guide/${name}`);
  for (const name of ['dist/bundle', 'prebuilds', ...documents, ...guides]) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    cpSync(name, join(folder, name), { recursive: true });
  }
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const key of ofCheckout) delete manifest[key];
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

/** Packs the staged `folder` into `destination`. Resolves to the file; rejects with what npm wrote. */
export async function packStaged(folder, destination) {
  const args = ['pack', folder, '--silent', '--pack-destination', destination];
  const { status, output } = await run('npm', args, { capture: true });
  const name = readdirSync(destination).find((each) => each.endsWith('.tgz'));
  if (status !== 0 || name === undefined) throw new Error(`npm pack made no file:\n${output}`);
  return join(destination, name);
}
