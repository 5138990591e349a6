// The program of a worker that several parents share: a session with each, one task at a time for all of
// them. It leaves when whoever started it closes the wire, and soon after that one's end: what parents
// have begun may end first.

import { closeSync } from 'node:fs';
import { acceptChannel, Wire } from '../channels/index.js';
import { clearInterval, nowMs, setInterval } from '../internal/index.js';
import { callNative, requireNative } from '../native.js';
import { isAlive } from '../proc/index.js';
import { taskSignal } from './current-task.js';
import { Gate } from './gate.js';
import { markAsWorker } from './inside.js';
import { beforeFatal, leave } from './leave.js';
import { report } from './report.js';
import { Session } from './session.js';
import {
  channelFds,
  type FromSharedWorker,
  parseSharedWorkerTicket,
  parseToSharedWorker,
} from './shared-protocol.js';
import { Turns } from './turns.js';

/** A task of a parent that is gone may end by its signal for so long, in ms. */
const abandonedMs = 1000;
const lookAgainMs = 100;

const ticket = parseSharedWorkerTicket(JSON.parse(process.argv.splice(2, 1)[0] ?? 'null'));
markAsWorker({ number: ticket.worker, taskSignal, report });
const native = requireNative();
process.title = `manycore shared worker ${ticket.worker}`;
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
native.watchParent(ticket.parentPid, 0, ticket.orphanMs);

const descriptors = new native.NativeDescriptors();
// A copy that programs which tasks start do not inherit.
const controlSocketFd = descriptors.duplicate(ticket.controlSocketFd);
closeSync(ticket.controlSocketFd);
const turns = new Turns(callNative(() => native.NativeBoard.open(ticket.turnsFd)));
const gate = new Gate(1);
const sessions = new Map<number, { readonly session: Session; readonly pid: number }>();
let isOrphan = false;

// Only of whose task it may come: to the others it is the end of a worker, as any.
beforeFatal((error) => {
  for (const { session } of sessions.values()) if (session.isAtWork) session.uncaught(error);
});

const wire = new Wire<FromSharedWorker>(acceptChannel(ticket.channel).channel);
wire.onMessage = (message) => {
  const parsed = parseToSharedWorker(message);
  if (parsed.type === 'join') join(parsed.place, parsed.pid);
  else if (parsed.type === 'part') part(parsed.place);
  else for (const { session } of sessions.values()) session.retire();
};
wire.onClose = () => {
  isOrphan = true;
  leaveWhenEmpty();
  // Nobody tells any more which parents are gone; and this keeps the process, as the wire did.
  setInterval(() => {
    for (const [place, { pid }] of sessions) if (!isAlive(pid)) part(place);
  }, lookAgainMs);
};

function join(place: number, pid: number): void {
  const session = new Session({
    end: acceptChannel({ kind: 'shm', worker: 'process', spin: false, ...receive() }),
    gate,
    maxRssBytes: 0,
    isThread: false,
    onLearn: () => {},
    onTurn: (isAtWork) => {
      if (isAtWork) session.takeTurn();
      turns.set(ticket.worker, isAtWork ? place : 0);
    },
    onClose: () => part(place),
  });
  sessions.set(place, { session, pid });
}

function receive(): Record<string, number> {
  const fds = callNative(() => descriptors.receive(controlSocketFd));
  return Object.fromEntries(fds.map((fd, at) => [channelFds[at], descriptors.release(fd)]));
}

function part(place: number): void {
  const { session } = sessions.get(place) ?? {};
  if (session === undefined) return;
  sessions.delete(place);
  session.destroy();
  if (session.isAtWork) endAbandoned(session);
  wire.post({ type: 'parted', place });
  leaveWhenEmpty();
}

/** The others wait for a task whose parent is gone: not for ever. */
function endAbandoned(session: Session): void {
  const endMs = nowMs() + abandonedMs;
  const timer = setInterval(() => {
    if (!session.isAtWork) clearInterval(timer);
    else if (nowMs() > endMs) leave(true);
  }, lookAgainMs);
}

function leaveWhenEmpty(): void {
  if (isOrphan && sessions.size === 0) leave(true);
}
