// A system that starts no more processes for this user, while `manycore serve` runs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyOf } from '../serve/client.js';
import { listens, othersNeedRoot, skip } from '../serve/served.js';
import { childrenOf, limit, noLimits, waitFor } from '../support/index.js';
import { deadlineMs, startWith } from './serving.js';

const nobody = 65_534;

test('servers continue when the system refuses to fork, and restart a process once it does not', {
  // Root has no limit, and another user shares its limit with its other processes.
  skip: skip || noLimits || othersNeedRoot(),
}, async (t) => {
  const { child, errors, port, pids } = await startWith(t, ['-P', '2', '-L', '1', listens], {
    uid: nobody,
    gid: nobody,
    cwd: '/',
  });
  const supervisor = child.pid ?? 0;
  limit(supervisor, '--nproc=1:', nobody);
  const [killed = 0, other = 0] = pids;
  process.kill(killed, 'SIGKILL');
  await waitFor(
    () => errors.some((line) => /a new process failed \(.*EAGAIN\)/.test(line)),
    deadlineMs,
  );
  for (let asked = 0; asked < 4; asked += 1) assert.match(await bodyOf(port), RegExp(`^${other}:`));
  limit(supervisor, '--nproc=4096:', nobody);
  await waitFor(() => childrenOf(supervisor).length === 2, deadlineMs);
});
