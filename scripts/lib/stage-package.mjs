// Stages the packages of npm in folders of their own: the package with the bundle, the documents for users,
// and a package.json without the parts for a checkout (scripts, development packages); and a package for each
// platform with its binaries, of which npm installs one. Needs the build (dist/, prebuilds/).
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { builtFiles, platforms } from './platforms.mjs';
import { run } from './run.mjs';

const documents = ['README.md', 'CHANGELOG.md', 'LICENSE', 'docs/errors.md', 'docs/metrics.md'];
const ofCheckout = ['private', 'scripts', 'devDependencies'];

/** Empties `folder`, writes the package there, and returns its manifest. */
export function stagePackage(folder) {
  rmSync(folder, { recursive: true, force: true });
  const pages = readdirSync('docs/guide').filter((name) => name.endsWith('.md')); // without pictures
  const guides = pages.map((name) => `docs/guide/${name}`);
  for (const name of ['dist/bundle', ...documents, ...guides]) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    cpSync(name, join(folder, name), { recursive: true });
  }
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const key of ofCheckout) delete manifest[key];
  manifest.optionalDependencies = Object.fromEntries(
    Object.keys(platforms).map((name) => [`@manycore/${name}`, manifest.version]),
  );
  writeManifest(folder, manifest);
  return manifest;
}

/** Writes the packages of the platforms whose binaries are built into `folder`, and returns their names. */
export function stagePlatforms(folder) {
  const names = Object.keys(platforms).filter((name) => existsSync(`prebuilds/${name}`));
  const { version, license, author } = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const name of names) {
    const { os, cpu, libc } = platforms[name];
    cpSync(`prebuilds/${name}`, join(folder, name), { recursive: true });
    cpSync('LICENSE', join(folder, name, 'LICENSE'));
    writeManifest(join(folder, name), {
      name: `@manycore/${name}`,
      version,
      description: `The native binary of manycore for ${name}`,
      license,
      author,
      os: [os],
      cpu: [cpu],
      libc: [libc],
      files: Object.keys(builtFiles),
    });
  }
  return names;
}

function writeManifest(folder, manifest) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Packs the staged `folder` into `destination`. Resolves to the file; rejects with npm's output. */
export async function packStaged(folder, destination) {
  const args = ['pack', folder, '--silent', '--pack-destination', destination];
  const { status, output } = await run('npm', args, { capture: true });
  const name = output.trim().split('\n').at(-1) ?? '';
  if (status !== 0 || !name.endsWith('.tgz')) throw new Error(`npm pack made no file:\n${output}`);
  return join(destination, name);
}
