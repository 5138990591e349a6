// Provides a program that tests need and that npm does not have: the one on PATH, else Debian's, unpacked into a
// folder of the repository without an installation. Without either, those tests are skipped with a message.
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { hasCommand, run } from './run.mjs';

/** Debian puts servers into folders that are not on a user's PATH. */
const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
const limitMs = 120_000;
/** The kernel that scripts/build-guest-kernel.mjs makes. */
export const guestKernelPath = 'node_modules/.cache/manycore-guest-kernel/linux.uml';

/** Resolves to the path of the server, or to `undefined`. */
export function natsServer() {
  return debianProgram('nats-server', 'usr/sbin/nats-server');
}

/** Resolves to the path of bubblewrap, without which there are no sandboxes, or to `undefined`. */
export function bubblewrap() {
  return debianProgram('bubblewrap', 'usr/bin/bwrap');
}

/** Resolves to the path of a kernel for guests: our own if it was built, else Debian's, or to `undefined`. */
export async function guestKernel() {
  if (existsSync(guestKernelPath)) return join(process.cwd(), guestKernelPath);
  return await debianProgram('user-mode-linux', 'usr/bin/linux.uml');
}

/** Resolves to the path of gVisor, or to `undefined`. */
export function gvisor() {
  return debianProgram('runsc', 'usr/bin/runsc');
}

/** `path`: where the package has the program. */
async function debianProgram(name, path) {
  const installed = places.map((place) => join(place, basename(path))).find(existsSync);
  if (installed !== undefined) return installed;
  const folder = cacheFolder(name);
  const unpacked = join(folder, path);
  if (!existsSync(unpacked)) await unpack(name, folder);
  return existsSync(unpacked) ? join(process.cwd(), unpacked) : undefined;
}

/** Resolves to the folder with the unpacked files of a package; it may be empty. */
export async function debianFolder(name) {
  const folder = cacheFolder(name);
  if (!existsSync(folder)) await unpack(name, folder);
  return folder;
}

function cacheFolder(name) {
  return join('node_modules/.cache', `manycore-${name}`);
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
