// The program that runs inside a worker. It answers `ready` when it can take tasks; it leaves when its
// parent closes the channel, and when its parent is gone: a process worker watches the parent's process
// (and the worker thread that started it) natively, so that even one in an endless loop leaves;
// without the binary it leaves as soon as its event loop sees the closed channel.
// Loaded at every start of a worker: what it imports decides how fast a pool answers from cold.

import { acceptChannel } from '../channels/index.js';
import { disposePerWorker } from '../context/index.js';
import { takeWorkerData } from '../internal/index.js';
import { nativeBinding } from '../native.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import { taskSignal } from './current-task.js';
import { markAsWorker } from './inside.js';
import { beforeFatal, beforeLeaving, leave, teardownMs } from './leave.js';
import { Loads } from './loads.js';
import { Parcels } from './parcels.js';
import { parseTicket, type WorkerTicket } from './protocol.js';
import { report } from './report.js';
import { Session } from './session.js';

/** It may go on for so long when its parent's process has ended, to leave as it would have, in ms. */
const orphanMs = 500;

/** A process gets its ticket as its one argument; a thread has none. */
const ticketText = process.argv[2];
const isProcess = ticketText !== undefined;

function readTicket(): WorkerTicket {
  return parseTicket(isProcess ? JSON.parse(ticketText) : takeWorkerData());
}

function prepareProcess(ticket: WorkerTicket): void {
  if (isProcess) {
    // Ctrl-C reaches the whole terminal group: the parent decides what becomes of its workers.
    process.on('SIGINT', () => {});
    process.title = `manycore worker ${ticket.workerId}`;
    process.argv.splice(2, 1);
    nativeBinding()?.watchParent(ticket.parentPid, ticket.parentThread, orphanMs);
  }
  if (ticket.pinnedCores.length > 0) nativeBinding()?.pinThread([...ticket.pinnedCores]);
}

function start(ticket: WorkerTicket): void {
  const loads = ticket.loads && new Loads(ticket.loads);
  const session = new Session({
    end: acceptChannel(ticket.channel),
    concurrencyLimit: new ConcurrencyLimit(ticket.concurrentTasks),
    maxRssBytes: ticket.maxRssBytes,
    isThread: !isProcess,
    parcels: ticket.parcels && new Parcels(ticket.parcels),
    onLearn: (loading) => {
      if (loads !== undefined) countLoad(loads, loading);
    },
    onTurn: () => {},
    onClose: () => leave(isProcess),
  });
  beforeLeaving(disposePerWorker, teardownMs);
  beforeFatal((error) => session.uncaught(error));
  session.takeTurn();
  session.ref();
  loads?.end(); // the modules of this program
}

/** A definition was read; `loading` while it loads modules. */
function countLoad(loads: Loads, loading: Promise<void> | undefined): void {
  if (loading !== undefined) {
    loads.begin();
    const end = (): void => loads.end();
    loading.then(end, end);
  }
  loads.learnt();
}

const ticket = readTicket();
markAsWorker({ number: ticket.workerId, taskSignal, report });
prepareProcess(ticket);
start(ticket);
