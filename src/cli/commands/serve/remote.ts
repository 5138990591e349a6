// `manycore status`, `reload`, `scale`: requests to servers that run in other processes.

import { CodedError } from '../../../errors.js';
import {
  addressText,
  type Range,
  type RemoteServer,
  remoteServers,
  type ServerStatus,
  statusColumns,
} from '../../../serve/index.js';

/** Prints the status of all servers of this user, or of one process. Throws `SERVE_CONTROL_FAILED`. */
export async function showStatus(pid: number | undefined, isJson: boolean): Promise<void> {
  const found = pid === undefined ? await remoteServers() : await serversOf(pid);
  const shown = found.map(({ status }) => status);
  if (isJson) console.log(JSON.stringify(shown, undefined, 2));
  else if (shown.length === 0) console.log('no server runs: manycore serve APP starts one');
  else for (const each of shown) console.log(table(each));
}

/** Reloads all servers of one process. Rejects with `SERVE_CONTROL_FAILED`. */
export async function reloadServer(pid: number | undefined): Promise<void> {
  const found = await serversOf(pid);
  await Promise.all(found.map((server) => server.reload()));
  console.log('reloaded');
}

/** Scales the only server of one process. Rejects with `SERVE_CONTROL_FAILED`. */
export async function scaleServer(
  processes: number | Range,
  pid: number | undefined,
): Promise<void> {
  const [server, second] = await serversOf(pid);
  if (second !== undefined) {
    const message = 'this process serves several apps, which have sizes of their own';
    throw new CodedError('SERVE_CONTROL_FAILED', `${message}: set them in its configuration`);
  }
  await server?.scale(processes);
  const { min, max } =
    typeof processes === 'number' ? { min: processes, max: processes } : processes;
  const count = min === max ? `${max}` : `${min} to ${max}`;
  console.log(`serving from ${count} process${max === 1 ? '' : 'es'}`);
}

/** Servers of the process `pid`, or of the only process that serves. */
async function serversOf(pid: number | undefined): Promise<RemoteServer[]> {
  const all = await remoteServers();
  const found = all.filter(({ status }) => pid === undefined || status.pid === pid);
  const pids = new Set(found.map(({ status }) => status.pid));
  if (pids.size === 1) return found;
  if (pids.size === 0) {
    const where = pid === undefined ? '' : ` in process ${pid}`;
    const message = `no server of this user runs${where}: manycore serve APP starts one`;
    throw new CodedError('SERVE_CONTROL_FAILED', message);
  }
  const list = found.map(({ status }) => `${status.pid} (${status.app})`).join(', ');
  throw new CodedError('SERVE_CONTROL_FAILED', `several servers run: say which of ${list}`);
}

/** As wide as its words. */
function table({ pid, app, addresses, loops }: ServerStatus): string {
  const lines = [
    statusColumns.map(({ head }) => head),
    ...loops.map((line) => statusColumns.map(({ text }) => text(line))),
  ];
  const widths = statusColumns.map((_, at) =>
    Math.max(...lines.map((line) => line[at]?.length ?? 0)),
  );
  const padded = (cell: string, at: number): string => {
    const width = widths[at] ?? 0;
    return statusColumns[at]?.isText ? cell.padEnd(width) : cell.padStart(width);
  };
  const text = lines.map((line) => line.map(padded).join('  ').trimEnd());
  const where = addresses.length === 0 ? '' : ` at ${addresses.map(addressText).join(', ')}`;
  return [`${app}${where}, served by process ${pid}`, ...text, ''].join('\n');
}
