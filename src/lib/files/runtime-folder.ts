// The folder in which the programs of a user are found, each by a socket: private, so that nobody else can
// ask them, stop them or stand in for one. The XDG Base Directory Specification names it; where it is not
// set, a folder in the system's temporary folder, which must be ours. Not here: what is asked over the sockets
// (serve, agent).

import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { CodedError } from '../../errors.js';
import { messageOf } from '../message.js';

/** Creates it where it is missing. Throws `RUNTIME_FOLDER_REFUSED`. */
function runtimeFolder(): string {
  const ofSession = process.env['XDG_RUNTIME_DIR'] ?? '';
  const way =
    ofSession === ''
      ? 'set XDG_RUNTIME_DIR to a folder of your own'
      : 'unset XDG_RUNTIME_DIR, or set it to a folder of your own';
  const user = process.getuid?.() ?? 0;
  const path = ofSession === '' ? join(tmpdir(), `manycore-${user}`) : join(ofSession, 'manycore');
  try {
    makeFolder(path, dirname(path));
    if (isPrivate(path, user)) return path;
  } catch (cause) {
    const message = `${path} cannot be made: ${messageOf(cause)}${ownerText(dirname(path), user)}: ${way}`;
    throw new CodedError('RUNTIME_FOLDER_REFUSED', message, { cause });
  }
  const message = `${path} is not a private folder of this user: remove it, or ${way}`;
  throw new CodedError('RUNTIME_FOLDER_REFUSED', message);
}

/**
 * Returns the path of a folder of this name in it, as private, which is created where it is missing. Throws
 * `RUNTIME_FOLDER_REFUSED`.
 */
export function privateFolder(name: string): string {
  const path = socketPath(name);
  makeFolder(path, dirname(path));
  if (isPrivate(path, process.getuid?.() ?? 0)) return path;
  const message = `${path} is not a private folder of this user: remove it`;
  throw new CodedError('RUNTIME_FOLDER_REFUSED', message);
}

/** One after the other: Node 20 never ends to make folders in /proc by `recursive`. */
function makeFolder(path: string, parent: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = Object(error);
    if (code === 'EEXIST') return;
    // In /proc nothing can be made, although it is there.
    if (code !== 'ENOENT' || existsSync(parent)) throw error;
    makeFolder(parent, dirname(parent));
    makeFolder(path, parent);
  }
}

function isPrivate(path: string, user: number): boolean {
  const found = lstatSync(path);
  return found.isDirectory() && found.uid === user && (found.mode & 0o077) === 0;
}

/** As after `su`, which keeps the variable. */
function ownerText(folder: string, user: number): string {
  try {
    const { uid } = statSync(folder);
    return uid === user ? '' : `, in a folder of another user (number ${uid})`;
  } catch {
    return '';
  }
}

/** The path of the socket with this name. Throws `RUNTIME_FOLDER_REFUSED`. */
export function socketPath(name: string): string {
  return join(runtimeFolder(), name);
}

/** Sockets of programs that run, or have run, by their names. Throws `RUNTIME_FOLDER_REFUSED`. */
export function socketPaths(names: RegExp): string[] {
  const folder = runtimeFolder();
  return readdirSync(folder)
    .filter((file) => names.test(file))
    .map((file) => join(folder, file));
}

/** True: the process in the name of a socket is no more: killed, it left it behind. */
export function isLeftSocket(path: string): boolean {
  const pid = Number(/-(\d+)\b/.exec(basename(path))?.[1]);
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return Object(error).code === 'ESRCH';
  }
}

/** Removes a socket whose process has ended; that of a live process stays. */
export function removeLeftSocket(path: string): void {
  if (isLeftSocket(path)) rmSync(path, { force: true });
}
