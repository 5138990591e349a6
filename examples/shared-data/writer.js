// A unit that writes the reports that nobody has written.

import { sharedCounter, sharedLock, sharedMap } from 'manycore';

const reports = sharedMap('reports');
const written = sharedCounter('reports written');

async function write(day) {
  const lease = await sharedLock('report').acquire();
  try {
    if (await reports.has(day)) return; // the other one was first
    await written.add();
    await reports.set(day, { by: process.pid, token: lease.token });
  } finally {
    await lease.release();
  }
}

export async function start() {
  for (const day of ['Monday', 'Tuesday', 'Wednesday']) await write(day);
}
