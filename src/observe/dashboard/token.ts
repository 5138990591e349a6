// The token of this user, kept in the private folder, so that it stays the same when the dashboard restarts.
// A process that can read it there could poll the programs directly. Not here: access by token (access.ts).

import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { CodedError } from '../../errors.js';
import { messageOf, socketPath } from '../../lib/index.js';

const tokenBytes = 32;
const tokenText = /^[\w-]{43}$/;
const tokenFile = 'dashboard.token';
/** A try fails only when another process removes the file at the same moment. */
const maxTries = 5;

/**
 * Returns the token, created at the first call. Throws `DASHBOARD_START_FAILED`, `RUNTIME_FOLDER_REFUSED`.
 */
export function userToken(): string {
  const path = socketPath(tokenFile);
  let cause: unknown;
  try {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const token = foundAt(path) ?? madeAt(path);
      if (token !== undefined) return token;
    }
  } catch (error) {
    cause = error;
  }
  const why = cause === undefined ? 'it does not stay' : messageOf(cause);
  const message = `the dashboard cannot keep its token in ${path}: ${why}: make room there, or set XDG_RUNTIME_DIR`;
  throw new CodedError('DASHBOARD_START_FAILED', message, { cause });
}

/** Reads the token; `undefined`: there is none, or a malformed one, which is removed. */
function foundAt(path: string): string | undefined {
  try {
    const found = readFileSync(path, 'utf8');
    if (tokenText.test(found)) return found;
  } catch (error) {
    if (Object(error).code === 'ENOENT') return undefined;
    throw error;
  }
  rmSync(path, { force: true });
  return undefined;
}

/** Creates the token; `undefined`: another process was faster. The file appears complete, by a link. */
function madeAt(path: string): string | undefined {
  const token = randomBytes(tokenBytes).toString('base64url');
  const whole = `${path}.${process.pid}`;
  try {
    writeFileSync(whole, token, { mode: 0o600 });
    linkSync(whole, path);
    return token;
  } catch (error) {
    if (Object(error).code === 'EEXIST') return undefined;
    throw error;
  } finally {
    rmSync(whole, { force: true });
  }
}
