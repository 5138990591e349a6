// `manycore dashboard`: serves a live page of the manycore programs of this user, until a signal ends it.

import { once } from 'node:events';
import { Dashboard } from '../../../observe/index.js';
import { outputLost } from '../../output.js';

export interface DashboardFlags {
  readonly port?: number;
  readonly host?: string;
}

/** Fixed, so that an open page reconnects after a restart; when it is taken, any free port is used. */
const usualPort = 7420;

/** Rejects with `OPTION_INVALID`, `DASHBOARD_START_FAILED`, `RUNTIME_FOLDER_REFUSED`. */
export async function showDashboard({ port, host = '127.0.0.1' }: DashboardFlags): Promise<void> {
  using dashboard = await open(port, host);
  const ended = Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  console.log(`open ${dashboard.address}`);
  if (dashboard.addressForOthers !== undefined) {
    console.log(`from other machines ${dashboard.addressForOthers}`);
    console.log(
      'others in the network can see it, too, who read this token on its way: it is sent in the clear',
    );
  }
  await Promise.race([ended, outputLost]);
}

async function open(port: number | undefined, host: string): Promise<Dashboard> {
  if (port !== undefined) return await Dashboard.open({ host, port });
  try {
    return await Dashboard.open({ host, port: usualPort });
  } catch (error) {
    if (Object(error).cause?.code !== 'EADDRINUSE') throw error;
    return await Dashboard.open({ host, port: 0 });
  }
}
