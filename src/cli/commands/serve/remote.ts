// `manycore list`, `status`, `reload`, `scale`, `upgrade`, `stop`: requests to servers that run in other processes.

import { CodedError } from '../../../errors.js';
import {
  addressText,
  durationText,
  type LoopStatus,
  type OutputLine,
  type Range,
  type RemoteServer,
  remoteServers,
  type ServerStatus,
  sizeText,
  statusColumns,
} from '../../../serve/index.js';

import { formatLine } from './log.js';
import { type Column, columns } from './table.js';

/** Prints a line for each server of this user. */
export async function listServers(isJson: boolean): Promise<void> {
  const found = (await remoteServers()).map(({ status }) => status);
  if (isJson) console.log(JSON.stringify(found, undefined, 2));
  else if (found.length === 0) console.log(noServer);
  else console.log(columns(listColumns, found, keysOfServer).join('\n'));
}

/** Prints the status of all servers of this user, or of some. Throws `SERVE_CONTROL_FAILED`. */
export async function showStatus(server: string | undefined, isJson: boolean): Promise<void> {
  const found = server === undefined ? await remoteServers() : await serversOf(server);
  const shown = found.map(({ status }) => status);
  if (isJson) console.log(JSON.stringify(shown, undefined, 2));
  else if (shown.length === 0) console.log(noServer);
  else for (const each of shown) console.log(table(each));
}

/** Reloads a server, or all of one process. Rejects with `SERVE_CONTROL_FAILED`. */
export async function reloadServer(server: string | undefined): Promise<void> {
  const found = await serversOf(server);
  await Promise.all(found.map((each) => each.reload()));
  console.log('reloaded');
}

/** Makes another process serve in place of a server. Rejects with `SERVE_CONTROL_FAILED`. */
export async function upgradeServer(server: string | undefined): Promise<void> {
  const [first] = await serversOf(server);
  await first?.upgrade();
  console.log('upgraded');
}

/** Ends a server, or all of one process, after their requests. Rejects with `SERVE_CONTROL_FAILED`. */
export async function stopServer(server: string | undefined): Promise<void> {
  const found = await serversOf(server);
  await Promise.all(found.map((each) => each.stop()));
  console.log('stopped');
}

/** Scales one server. Rejects with `SERVE_CONTROL_FAILED`. */
export async function scaleServer(
  processes: number | Range,
  server: string | undefined,
): Promise<void> {
  const [first, second] = await serversOf(server);
  if (second !== undefined) {
    const names = [first, second].map((each) => each?.status.name).join(' or ');
    const message = `this process serves several apps, which have sizes of their own: name one, ${names}`;
    throw new CodedError('SERVE_CONTROL_FAILED', message);
  }
  await first?.scale(processes);
  const { min, max } =
    typeof processes === 'number' ? { min: processes, max: processes } : processes;
  const count = min === max ? `${max}` : `${min} to ${max}`;
  console.log(`serving from ${count} process${max === 1 ? '' : 'es'}`);
}

export interface LogsFlags {
  readonly lines?: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

const defaultLines = 20;

/** Prints the last lines of a server, or of all of one process. Rejects with `SERVE_CONTROL_FAILED`. */
export async function printLogs(server: string | undefined, flags: LogsFlags): Promise<void> {
  const { lines = defaultLines, follow = false, json = false } = flags;
  const format = json ? 'json' : 'text';
  const found = await serversOf(server);
  const print = (line: OutputLine): void => void process.stdout.write(formatLine(line, format));
  await Promise.all(found.map((each) => each.logs({ lines, follow }, print)));
}

/** Columns that name the row: pid and loop, or the server. */
const keysOfLoop = 2;
const keysOfServer = 1;

const noServer = 'no server runs: manycore serve APP starts one';

/** The servers of the process `server`, the one with that name, or those of the only process that serves. */
async function serversOf(server: string | undefined): Promise<RemoteServer[]> {
  const all = withoutReplaced(await remoteServers());
  const found = all.filter(
    ({ status }) => server === undefined || status.name === server || String(status.pid) === server,
  );
  const pids = new Set(found.map(({ status }) => status.pid));
  if (pids.size === 1) return found;
  const list = (found.length > 0 ? found : all).map(
    ({ status: { name, pid, app } }) => `${name}, pid ${pid} (${app})`,
  );
  if (list.length === 0)
    throw refused(`no server of this user runs: manycore serve APP starts one`);
  if (pids.size === 0) throw refused(`no server is called ${server}: there is ${list.join('; ')}`);
  const what =
    server === undefined ? 'run: give the name or the pid' : `are called ${server}: give the pid`;
  const way = server === undefined ? '' : '; --name gives a server a name of its own';
  throw refused(`several servers ${what} of one, ${list.join('; ')}${way}`);
}

/** In an upgrade a server and its successor have one pid and one name: the later one stays. */
function withoutReplaced(servers: readonly RemoteServer[]): RemoteServer[] {
  return servers.filter(
    ({ status: { pid, name, startedAtMs } }) =>
      !servers.some(
        ({ status: other }) =>
          other.pid === pid && other.name === name && other.startedAtMs > startedAtMs,
      ),
  );
}

function refused(message: string): CodedError {
  return new CodedError('SERVE_CONTROL_FAILED', message);
}

const listColumns: readonly Column<ServerStatus>[] = [
  { head: 'name', text: ({ name }) => name, isText: true },
  { head: 'pid', text: ({ pid }) => String(pid) },
  { head: 'processes', text: ({ loops }) => String(pidsOf(loops).length) },
  { head: 'loops', text: ({ loops }) => String(loops.filter(isReady).length) },
  { head: 'busy', text: ({ loops }) => `${Math.round(100 * meanOf(loops))} %` },
  { head: 'open', text: ({ loops }) => String(sumOf(loops, 'openConnections')) },
  { head: 'requests', text: ({ loops }) => String(sumOf(loops, 'requests')) },
  { head: 'memory', text: ({ loops }) => sizeText(memoryOf(loops)) },
  { head: 'lost', text: ({ lostProcesses }) => String(lostProcesses) },
  { head: 'age', text: ({ startedAtMs }) => durationText(Date.now() - startedAtMs) },
  { head: 'address', text: ({ addresses }) => addresses.map(addressText).join(' '), isText: true },
];

function isReady({ state }: LoopStatus): boolean {
  return state === 'ready';
}

function pidsOf(loops: readonly LoopStatus[]): number[] {
  return [...new Set(loops.filter(isReady).flatMap(({ pid }) => pid ?? []))];
}

function sumOf(loops: readonly LoopStatus[], key: 'openConnections' | 'requests'): number {
  return loops.reduce((sum, each) => sum + each[key], 0);
}

function meanOf(loops: readonly LoopStatus[]): number {
  const ready = loops.filter(isReady);
  return ready.reduce((sum, { utilization }) => sum + utilization, 0) / Math.max(1, ready.length);
}

/** Each process once. */
function memoryOf(loops: readonly LoopStatus[]): number {
  const byPid = new Map(loops.map(({ pid, rssBytes }) => [pid, rssBytes]));
  return [...byPid.values()].reduce((sum, each) => sum + each, 0);
}

function table({ name, pid, app, addresses, loops }: ServerStatus): string {
  const where = addresses.length === 0 ? '' : ` at ${addresses.map(addressText).join(', ')}`;
  const title = `${name} (${app})${where}, served by process ${pid}`;
  return [title, ...columns(statusColumns, loops, keysOfLoop), ''].join('\n');
}
