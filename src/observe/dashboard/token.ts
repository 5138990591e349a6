// The token of this user: it lies in the private folder, so that it stays the same when the dashboard is
// started anew; whoever can read it there could ask the programs themselves. Not here: what it opens
// (access.ts).

import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { CodedError } from '../../errors.js';
import { messageOf, socketPath } from '../../internal/index.js';

const tokenBytes = 32;
const tokenText = /^[\w-]{43}$/;
const tokenFile = 'dashboard.token';
/** Each is lost only to somebody who removes the file in the same moment. */
const maxTries = 5;

/** Made where there is none. Throws `DASHBOARD_START_FAILED`, `RUNTIME_FOLDER_REFUSED`. */
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

/** `undefined` where there is none, and where what is there is none: that is removed. */
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

/** `undefined` where another was faster. Under its name it is whole from the first moment on. */
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
