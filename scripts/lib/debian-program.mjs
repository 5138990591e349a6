// Provides a program that tests need and that npm does not have: the one on PATH, else Debian's, unpacked into a
// folder of the repository without an installation. Without either, those tests are skipped with a message.
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { hasCommand, run } from './run.mjs';

/** Debian puts servers into folders that are not on a user's PATH. */
const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
const limitMs = 120_000;

/** Resolves to the path of the server, or to `undefined`. */
export function natsServer() {
  return debianProgram('nats-server', 'usr/sbin/nats-server');
}

/** Resolves to the path of bubblewrap, without which there are no sandboxes, or to `undefined`. */
export function bubblewrap() {
  return debianProgram('bubblewrap', 'usr/bin/bwrap');
}

/** `path`: where the package has the program. */
async function debianProgram(name, path) {
  const installed = places.map((place) => join(place, basename(path))).find(existsSync);
  if (installed !== undefined) return installed;
  const folder = join('node_modules/.cache', `manycore-${name}`);
  const unpacked = join(folder, path);
  if (!existsSync(unpacked)) await unpack(name, folder);
  return existsSync(unpacked) ? join(process.cwd(), unpacked) : undefined;
}

async function unpack(name, folder) {
  if (!(await hasCommand('apt-get')) || !(await hasCommand('dpkg-deb'))) return;
  mkdirSync(folder, { recursive: true });
  const download = () =>
    run('apt-get', ['download', '--quiet', name], { cwd: folder, limitMs, capture: true });
  if ((await download()).status !== 0) {
    await run('apt-get', ['update', '--quiet'], { limitMs, capture: true }); // outdated package lists
    await download();
  }
  const file = readdirSync(folder).find((each) => each.endsWith('.deb'));
  if (file !== undefined)
    await run('dpkg-deb', ['--extract', join(folder, file), folder], { limitMs, capture: true });
}
