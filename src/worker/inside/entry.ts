// The program that runs inside a worker. It sends `ready` when it can take tasks. It leaves when its parent
// closes the channel or is gone: a process worker watches the parent's process (and the worker thread that
// started it) natively, so that even one in an endless loop leaves; without the binary it leaves as soon as
// its event loop sees the closed channel.
// Loaded at every start of a worker: its imports decide how fast a pool answers from cold.

import { acceptChannel } from '../../channels/index.js';
import { disposePerWorker, loadSendingHalf, setImportRemedy } from '../../context/receiving.js';
import { keepTickShape, takeWorkerData } from '../../lib/index.js';
import { nativeBinding } from '../../native.js';
import { ConcurrencyLimit } from '../both/concurrency-limit.js';
import { Loads } from '../both/loads.js';
import { Parcels } from '../both/parcels.js';
import { adoptSpace, refuseSpace } from '../both/shared-memory.js';
import { parseTicket, type WorkerTicket } from '../protocol.js';
import { taskSignal } from './current-task.js';
import { markAsWorker } from './inside.js';
import { beforeFatal, beforeLeaving, leave, teardownMs } from './leave.js';
import { yieldCores } from './priority.js';
import { ask, report } from './report.js';
import { Session } from './session.js';

/** Maximum time to leave in order after the end of the parent's process, in ms. */
const orphanMs = 500;

/** The ticket of a process is its one argument; a thread has none there. */
const ticketText = process.argv[2];
const isProcess = ticketText !== undefined;

function readTicket(): WorkerTicket {
  return parseTicket(isProcess ? JSON.parse(ticketText) : takeWorkerData());
}

function prepareProcess(ticket: WorkerTicket): void {
  if (isProcess) {
    // Ctrl-C reaches the whole terminal group: the parent decides about its workers.
    process.on('SIGINT', () => {});
    process.title = `manycore worker ${ticket.workerId}`;
    process.argv.splice(2, 1);
    if (isPartition) {
      refuseSpace();
      setImportRemedy(
        'a sandbox has no files but those below `read`: partitionNeeds(fn) names the folders of what a function imports',
      );
    }
    // The parent of a partition has no number in it; the partition ends with it.
    if (!isPartition) nativeBinding()?.watchParent(ticket.parentPid, ticket.parentThread, orphanMs);
    adoptSpace(ticket.spaceFd);
  }
  if (ticket.niceIncrement > 0) yieldCores(ticket.niceIncrement, isProcess);
  if (ticket.pinnedCores.length > 0) nativeBinding()?.pinThread([...ticket.pinnedCores]);
}

function start(ticket: WorkerTicket): void {
  keepTickShape();
  const loads = ticket.loads && new Loads(ticket.loads);
  const session = new Session({
    end: acceptChannel(ticket.channel),
    concurrencyLimit: new ConcurrencyLimit(ticket.concurrentTasks),
    maxRssBytes: ticket.maxRssBytes,
    isThread: !isProcess,
    isPartition,
    parcels: ticket.parcels && new Parcels(ticket.parcels),
    onLearn: (loading) => {
      if (loads !== undefined) countLoad(loads, loading);
    },
    onClose: () => leave(isProcess),
  });
  beforeLeaving(disposePerWorker, teardownMs);
  beforeFatal((error) => session.uncaught(error));
  session.takeTurn();
  session.ref();
  loads?.end(); // ends the load that stands for this program's modules
}

/** Counts a definition that was read; `loading` while it loads modules. */
function countLoad(loads: Loads, loading: Promise<void> | undefined): void {
  if (loading !== undefined) {
    loads.begin();
    const end = (): void => loads.end();
    loading.then(end, end);
  }
  loads.learnt();
}

const ticket = readTicket();
const isPartition = ticket.isPartition === true;
await loadSendingHalf();
markAsWorker({ number: ticket.workerId, taskSignal, report, ...(isPartition && { ask }) });
prepareProcess(ticket);
start(ticket);
