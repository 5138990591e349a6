// A runtime folder of a test's own: programs of others are not found there.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** Returns the folder in which the sockets are. */
export function ownRuntime(t: TestContext): string {
  const before = process.env['XDG_RUNTIME_DIR'];
  const path = mkdtempSync(join(tmpdir(), 'manycore-runtime-'));
  process.env['XDG_RUNTIME_DIR'] = path;
  t.after(() => {
    if (before === undefined) delete process.env['XDG_RUNTIME_DIR'];
    else process.env['XDG_RUNTIME_DIR'] = before;
    rmSync(path, { recursive: true, force: true });
  });
  const folder = join(path, 'manycore');
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}
