// Provides a nats-server for the tests of the cluster: the one on PATH, else Debian's, unpacked into a folder
// of the repository without an installation. Without either, those tests are skipped with a message.
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { hasCommand, run } from './run.mjs';

const folder = 'node_modules/.cache/manycore-nats';
const unpacked = join(folder, 'usr/sbin/nats-server');
/** Debian puts servers into folders that are not on a user's PATH. */
const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
const limitMs = 120_000;

/** Resolves to the path of the server, or to `undefined`. */
export async function natsServer() {
  const installed = places.map((place) => join(place, 'nats-server')).find(existsSync);
  if (installed !== undefined) return installed;
  if (!existsSync(unpacked)) await unpack();
  return existsSync(unpacked) ? join(process.cwd(), unpacked) : undefined;
}

async function unpack() {
  if (!(await hasCommand('apt-get')) || !(await hasCommand('dpkg-deb'))) return;
  mkdirSync(folder, { recursive: true });
  const download = () =>
    run('apt-get', ['download', '--quiet', 'nats-server'], { cwd: folder, limitMs, capture: true });
  if ((await download()).status !== 0) {
    await run('apt-get', ['update', '--quiet'], { limitMs, capture: true }); // outdated package lists
    await download();
  }
  const file = readdirSync(folder).find((name) => name.endsWith('.deb'));
  if (file !== undefined)
    await run('dpkg-deb', ['--extract', join(folder, file), folder], { limitMs, capture: true });
}
