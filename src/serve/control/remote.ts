// Client of servers of the same user in other processes, over their private sockets (control.ts).

import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { CodedError, hasCode } from '../../errors.js';
import { nodeHttp, removeLeftSocket, socketPaths } from '../../lib/index.js';
import { nameOfProgram } from '../name.js';
import type { Range } from '../options.js';
import { LineSplitter, type OutputLine } from '../output/lines.js';
import { privateSocketNames, type ServerStatus } from './control.js';
import { loopsIn } from './status.js';
import { addressesIn } from './status-page.js';

/** A server in another process. */
export class RemoteServer {
  readonly #path: string;
  readonly status: ServerStatus;
  /** Time of that status, by `performance.now()`. */
  readonly answeredMs = performance.now();

  constructor(path: string, status: ServerStatus) {
    this.#path = path;
    this.status = status;
  }

  /** Rejects with `SERVE_CONTROL_FAILED`. */
  reload(): Promise<ServerStatus> {
    return this.#change('/reload');
  }

  /**
   * Calls `onLine` with the last lines of its output, and with `follow` with those to come, until the server ends.
   * Rejects with `SERVE_CONTROL_FAILED` where its output is not read.
   */
  async logs(
    { lines, follow }: { readonly lines: number; readonly follow: boolean },
    onLine: (line: OutputLine) => void,
  ): Promise<void> {
    const path = `/logs?lines=${lines}${follow ? '&follow' : ''}`;
    const response = await get(this.#path, path);
    if (response.statusCode !== 200) {
      const { message }: { message?: unknown } = Object(await json(response));
      throw new CodedError('SERVE_CONTROL_FAILED', `the server has no logs: ${message}`);
    }
    const splitter = new LineSplitter((text) => {
      const line: unknown = JSON.parse(text);
      if (isOutputLine(line)) onLine(line);
    }, Infinity);
    try {
      for await (const bytes of response) splitter.write(Buffer.from(bytes));
    } catch (error) {
      if (Object(error).code !== 'ECONNRESET') throw error; // the server has ended
    }
  }

  /** Resolves when another process serves in its place. Rejects with `SERVE_CONTROL_FAILED`. */
  async upgrade(): Promise<void> {
    await this.#change('/upgrade');
  }

  /** Resolves when it has finished its requests and is closed. Rejects with `SERVE_CONTROL_FAILED`. */
  async stop(): Promise<void> {
    await this.#change('/stop');
  }

  /** Rejects with `SERVE_CONTROL_FAILED`. */
  scale(processes: number | Range): Promise<ServerStatus> {
    return this.#change('/scale', { processes });
  }

  /** Requests a change; from its successor when another process has taken over meanwhile. */
  async #change(path: string, body?: object): Promise<ServerStatus> {
    try {
      return await request(this.#path, 'POST', path, body);
    } catch (error) {
      const isReplaced = hasCode(Object(error).cause, 'SERVE_CLOSED');
      const isGone = ['ECONNREFUSED', 'ENOENT'].includes(Object(error).code);
      if (!isReplaced && !isGone) throw error;
      const { pid, name, startedAtMs } = this.status;
      // A successor has its pid and name. Two that have been replaced must not send the request to each other.
      const [next] = (await remoteServers())
        .filter(({ status }) => status.pid === pid && status.name === name)
        .filter(({ status }) => status.startedAtMs > startedAtMs)
        .sort((a, b) => b.status.startedAtMs - a.status.startedAtMs);
      if (next !== undefined) return await next.#change(path, body);
      if (isReplaced && path === '/stop') return this.status; // its successor has ended as well
      throw error;
    }
  }
}

function get(socketPath: string, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    nodeHttp().get({ socketPath, path, agent: false }, resolve).on('error', reject);
  });
}

function isOutputLine(value: unknown): value is OutputLine {
  const { timeMs, name, process, text }: Partial<Record<keyof OutputLine, unknown>> = Object(value);
  return (
    [timeMs, process].every(Number.isFinite) && typeof name === 'string' && typeof text === 'string'
  );
}

/** Returns all running servers by name. Throws `RUNTIME_FOLDER_REFUSED`. */
export async function remoteServers(): Promise<RemoteServer[]> {
  const found = socketPaths(privateSocketNames).map(async (path) => {
    try {
      return [new RemoteServer(path, await request(path, 'GET', '/status'))];
    } catch (error) {
      if (Object(error).code === 'ECONNREFUSED') removeLeftSocket(path);
      return [];
    }
  });
  const servers = (await Promise.all(found)).flat();
  const order = ({ status: { name, pid } }: RemoteServer): string => `${name} ${pid}`;
  return servers.sort((one, other) => order(one).localeCompare(order(other)));
}

/** Maximum wait for a status, in ms: a stopped supervisor accepts without answering. */
const statusLimitMs = 2000;

function request(
  socketPath: string,
  method: string,
  path: string,
  body?: object,
): Promise<ServerStatus> {
  return new Promise((resolve, reject) => {
    // A change takes as long as the program takes to start; a status is there at once.
    const limit = method === 'GET' && { signal: AbortSignal.timeout(statusLimitMs) };
    const options = { socketPath, method, path, agent: false, ...limit };
    const outgoing = nodeHttp().request(options, async (response) => {
      try {
        const answer: unknown = await json(response);
        const status = statusIn(answer);
        if (response.statusCode !== 200) reject(refusal(path, answer));
        else if (status === undefined)
          reject(refusal(path, { message: 'its answer is no status' }));
        else resolve(status);
      } catch (error) {
        reject(error);
      }
    });
    outgoing.on('error', reject);
    outgoing.end(body && JSON.stringify(body));
  });
}

/** Parses a status, also of another version of manycore; `undefined`: not a status. */
function statusIn(value: unknown): ServerStatus | undefined {
  const given: Partial<Record<keyof ServerStatus, unknown>> = Object(value);
  const { pid, app, name, startedAtMs, lostProcesses, addresses, loops } = given;
  if (typeof pid !== 'number' || typeof app !== 'string') return undefined;
  return {
    pid,
    name: typeof name === 'string' ? name : nameOfProgram(app),
    app,
    startedAtMs: typeof startedAtMs === 'number' ? startedAtMs : Date.now(),
    lostProcesses: typeof lostProcesses === 'number' ? lostProcesses : 0,
    addresses: addressesIn(addresses),
    loops: loopsIn(loops),
  };
}

function refusal(path: string, answer: unknown): CodedError {
  const given: { message?: string; code?: unknown; stack?: string } = Object(answer);
  const { message = 'no reason given', code, stack } = given;
  const text = `the server did not ${path.replace('/', '')}: ${message}`;
  if (stack !== undefined) {
    const thrown = Object.assign(new Error(message), { stack });
    const cause = new CodedError('SERVE_START_FAILED', message, { cause: thrown });
    return new CodedError('SERVE_CONTROL_FAILED', text, { cause });
  }
  const cause = code === 'SERVE_CLOSED' ? new CodedError(code, message) : undefined;
  return new CodedError('SERVE_CONTROL_FAILED', text, { cause });
}
