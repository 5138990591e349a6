// The folder in which the servers of a user are found: private, so that nobody else can stop them or
// stand in for one. The XDG Base Directory Specification names it; where it is not set, a folder under
// /tmp, which must be ours.

import { lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CodedError } from '../errors.js';

/** Creates it where it is missing. Throws `SERVE_CONTROL_FAILED`. */
function runtimeFolder(): string {
  const ofSession = process.env['XDG_RUNTIME_DIR'] ?? '';
  const user = process.getuid?.() ?? 0;
  const path = ofSession === '' ? join(tmpdir(), `manycore-${user}`) : join(ofSession, 'manycore');
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new CodedError('SERVE_CONTROL_FAILED', `${path} cannot be made: set XDG_RUNTIME_DIR`, {
      cause,
    });
  }
  const found = lstatSync(path);
  const isOurs = found.isDirectory() && found.uid === user && (found.mode & 0o077) === 0;
  if (isOurs) return path;
  throw new CodedError(
    'SERVE_CONTROL_FAILED',
    `${path} is not a private folder of this user: remove it, or set XDG_RUNTIME_DIR`,
  );
}

const name = /^serve-\d+(\.\d+)?\.sock$/;

let opened = 0;

/** Where the next server of this process is spoken to. Throws `SERVE_CONTROL_FAILED`. */
export function nextControlPath(): string {
  opened += 1;
  const suffix = opened === 1 ? '' : `.${opened}`;
  return join(runtimeFolder(), `serve-${process.pid}${suffix}.sock`);
}

/** Where servers of this user are, or were, spoken to. Throws `SERVE_CONTROL_FAILED`. */
export function controlPaths(): string[] {
  const folder = runtimeFolder();
  return readdirSync(folder)
    .filter((file) => name.test(file))
    .map((file) => join(folder, file));
}
