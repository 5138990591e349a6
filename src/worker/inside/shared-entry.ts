// The program of a worker that several parents share: a session with each, one task at a time for all of
// them. It exits when the supervisor closes the wire, and soon after the supervisor's end: tasks that have
// begun may end first.

import { acceptChannel, Wire } from '../../channels/index.js';
import { loadSendingHalf } from '../../context/receiving.js';
import { clearInterval, nowMs, setInterval } from '../../lib/index.js';
import { callNative, requireNative } from '../../native.js';
import { isAlive } from '../../proc/index.js';
import { ActiveLeases } from '../both/active-leases.js';
import { ConcurrencyLimit } from '../both/concurrency-limit.js';
import { ControlSocket } from '../both/control-socket.js';
import { adoptSpace } from '../both/shared-memory.js';
import {
  channelFds,
  type FromSharedWorker,
  parseSharedWorkerTicket,
  parseToSharedWorker,
} from '../both/shared-worker-protocol.js';
import { taskSignal } from './current-task.js';
import { markAsWorker } from './inside.js';
import { beforeFatal, leave } from './leave.js';
import { report } from './report.js';
import { Session } from './session.js';

/** Time for an orphaned task to end by its signal, in ms. */
const abandonedMs = 1000;
const pollMs = 100;

const ticket = parseSharedWorkerTicket(JSON.parse(process.argv.splice(2, 1)[0] ?? 'null'));
markAsWorker({ number: ticket.worker, taskSignal, report });
const native = requireNative();
process.title = `manycore shared worker ${ticket.worker}`;
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
native.watchParent(ticket.parentPid, 0, ticket.orphanMs);
await loadSendingHalf();
adoptSpace(ticket.spaceFd);

const controlSocket = new ControlSocket(ticket.controlSocketFd);
const activeLeases = new ActiveLeases(
  callNative(() => native.NativeBoard.open(ticket.activeLeasesFd)),
);
const concurrencyLimit = new ConcurrencyLimit(1);
const sessions = new Map<number, { readonly session: Session; readonly pid: number }>();
let isOrphan = false;

// Reported to the parent whose task may have thrown it: for the others a worker has ended.
beforeFatal((error) => {
  for (const { session } of sessions.values()) if (session.isAtWork) session.uncaught(error);
});

const wire = new Wire<FromSharedWorker>(acceptChannel(ticket.channel).channel, {
  onMessage: (message) => {
    const parsed = parseToSharedWorker(message);
    if (parsed.type === 'grant') grant(parsed.lease, parsed.pid);
    else if (parsed.type === 'release') release(parsed.lease);
    else for (const { session } of sessions.values()) session.retire();
  },
  onClose: () => {
    isOrphan = true;
    leaveWhenEmpty();
    // No message reports any more which parents are gone. The timer keeps the process alive, as the wire did.
    setInterval(() => {
      for (const [lease, { pid }] of sessions) if (!isAlive(pid)) release(lease);
    }, pollMs);
  },
});

function grant(lease: number, pid: number): void {
  const session = new Session({
    end: acceptChannel({ kind: 'shm', worker: 'process', spin: false, ...receive() }),
    concurrencyLimit,
    maxRssBytes: 0,
    isThread: false,
    isPartition: false,
    onLearn: () => {},
    onTurn: (isAtWork) => {
      if (isAtWork) session.takeTurn();
      activeLeases.set(ticket.worker, isAtWork ? lease : 0);
    },
    onClose: () => release(lease),
  });
  sessions.set(lease, { session, pid });
}

function receive(): Record<string, number> {
  return Object.fromEntries(controlSocket.receive().map((fd, at) => [channelFds[at], fd]));
}

function release(lease: number): void {
  const { session } = sessions.get(lease) ?? {};
  if (session === undefined) return;
  sessions.delete(lease);
  session.destroy();
  if (session.isAtWork) endAbandoned(session);
  wire.post({ type: 'released', lease });
  leaveWhenEmpty();
}

/** Limits how long the other parents wait for a task whose parent is gone. */
function endAbandoned(session: Session): void {
  const endMs = nowMs() + abandonedMs;
  const timer = setInterval(() => {
    if (!session.isAtWork) clearInterval(timer);
    else if (nowMs() > endMs) leave(true);
  }, pollMs);
}

function leaveWhenEmpty(): void {
  if (isOrphan && sessions.size === 0) leave(true);
}
