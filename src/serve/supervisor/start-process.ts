// Starts a process of a server with its descriptors, and a ticket that names them.

import { blockingThreads } from '../../blocking-pool/index.js';
import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import { grantedCores, WiredProcess, type WireTicket } from '../../worker/index.js';
import type { FilledServeOptions } from '../options.js';
import { StackWatch } from '../process/stack-watch.js';
import type { ToLoop, ToProcess } from '../protocol.js';
import { type LinkListener, socketPort, WireLink } from '../shared/link.js';
import type { AppSettings, ProcessTicket } from '../tickets.js';
import type { Workers } from './shared-workers.js';

export interface StartOptions {
  /** Number of the process in the scoreboard. */
  readonly number: number;
  readonly app: AppSettings;
  readonly boardFd: number;
  readonly bellFds: readonly number[];
  readonly workers: Workers;
  readonly serve: FilledServeOptions;
  readonly listener: LinkListener;
  /** Called with each stack of a program in the main thread. */
  readonly onStack: (stack: string | undefined) => void;
}

export type ProcessLink = WireLink<ToLoop | ToProcess>;

export interface Started {
  readonly process: WiredProcess<ProcessLink>;
  /** Set when the program runs in the main thread. */
  readonly stackWatch: StackWatch | undefined;
}

/** Starts the process. Throws `SERVE_START_FAILED`. */
export function startProcess(options: StartOptions): Started {
  let stackWatch: StackWatch | undefined;
  try {
    if (options.serve.loops.max === 1) stackWatch = new StackWatch(options.onStack);
    const fds = [options.boardFd, options.workers.activeLeasesFd, ...options.bellFds];
    const { owner, processes } = options.serve;
    const process = new WiredProcess<ProcessLink>({
      entry: new URL('../process/serve-entry.js', import.meta.url),
      fds: stackWatch === undefined ? fds : [...fds, stackWatch.theirFd],
      ticket: (wire, givenFds) => ticketOf(options, wire, givenFds),
      open: (channel, controlSocket) =>
        new WireLink(channel, socketPort(controlSocket), options.listener),
      uid: owner?.uid,
      gid: owner?.gid,
      blockingThreads: blockingThreads(grantedCores().count, processes.max),
    });
    return { process, stackWatch };
  } catch (error) {
    stackWatch?.close();
    throw new CodedError('SERVE_START_FAILED', messageOf(error), { cause: error });
  } finally {
    stackWatch?.closeTheirEnd();
  }
}

function ticketOf(
  { number, app, bellFds, serve }: StartOptions,
  wire: WireTicket,
  [boardFd = -1, activeLeasesFd = -1, ...others]: readonly number[],
): ProcessTicket {
  const { loops, placement, overloadMs, startTimeoutMs, drainTimeoutMs } = serve;
  return {
    kind: 'process',
    parentPid: process.pid,
    process: number,
    loops,
    placement,
    overloadMs,
    startTimeoutMs,
    drainTimeoutMs,
    app,
    ...wire,
    boardFd,
    activeLeasesFd,
    bellFds: others.slice(0, bellFds.length),
    stackFd: others[bellFds.length],
  };
}
