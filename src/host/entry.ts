// The program that runs inside a host. It answers `ready` when it can take tasks; it leaves when its
// parent closes the channel, and when its parent is gone: a process host watches the parent's process
// (and the worker thread that started it) natively, so that even one in an endless loop leaves;
// without the binary it leaves as soon as its event loop sees the closed channel.
// Loaded at every start of a host: what it imports decides how fast a pool answers from cold.

import { createRequire } from 'node:module';
import type * as WorkerThreads from 'node:worker_threads';
import { acceptChannel } from '../channels/index.js';
import { createExporter, createImporter, exportError } from '../context/index.js';
import { nativeBinding } from '../native.js';
import { bufferCarrier } from './buffers.js';
import { markAsHost } from './inside.js';
import { Link } from './link.js';
import { Loads } from './loads.js';
import { frame, type HostTicket, noSetup, parseTicket } from './protocol.js';
import { Relay, relayTo } from './relay.js';
import { Runner } from './runner.js';
import { allocateFrom } from './shared.js';

/** The parent's owner number in the arena. */
const parentOwner = 0;

/** A process gets its ticket as its one argument; a thread has none. */
const ticketText = process.argv[2];
const isProcess = ticketText !== undefined;

function readTicket(): HostTicket {
  if (isProcess) return parseTicket(JSON.parse(ticketText));
  // Loaded here: a process starts faster and smaller without it.
  const threads: typeof WorkerThreads = createRequire(import.meta.url)('node:worker_threads');
  return parseTicket(threads.workerData);
}

function prepareProcess(ticket: HostTicket): void {
  if (isProcess) {
    // Ctrl-C reaches the whole terminal group: the parent decides what becomes of its hosts.
    process.on('SIGINT', () => {});
    process.title = `manycore host ${ticket.hostId}`;
    process.argv.splice(2, 1);
    nativeBinding()?.watchParent(ticket.parentPid, ticket.parentThread);
  }
  if (ticket.pinnedCores.length > 0) nativeBinding()?.pinThread([...ticket.pinnedCores]);
}

function start(ticket: HostTicket): void {
  const end = acceptChannel(ticket.channel);
  const carrier = bufferCarrier(() => end.blocks);
  const exporter = createExporter({ buffers: carrier });
  const importer = createImporter({ exporter, buffers: carrier });
  const loads = ticket.loads && new Loads(ticket.loads);
  const link = new Link({
    end,
    exporter,
    importer,
    what: 'the result',
    peer: parentOwner,
    events: {
      onFrame: (kind, task, target, body) => {
        if (!relay.receive(kind, task, target, body)) runner.receive(kind, task, target, body);
      },
      onDrain: () => {},
      onClose: leave,
      onLearn: (loading) => {
        if (loads !== undefined) countLoad(loads, loading);
      },
    },
  });
  const runner = new Runner({
    link,
    exporter,
    importer,
    claims: end.claims,
    concurrentTasks: ticket.concurrentTasks,
    maxRssBytes: ticket.maxRssBytes,
    isThread: !isProcess,
    onSetup: (target, state) => void setUp(target, state),
  });
  const relay = new Relay(link, exporter, end.blocks);
  relayTo(relay);
  allocateFrom(end.blocks);
  if (end.blocks !== undefined) {
    end.blocks.onUnused = (block, count) => link.postRelease(block, count);
  }
  link.ref();
  loads?.end(); // the modules of this program

  async function setUp(target: number, state: Uint8Array): Promise<void> {
    try {
      if (target !== noSetup) {
        await importer.importFunction(target, state.byteLength === 0 ? undefined : state)();
      }
      link.post(frame.ready, 0, 0, [process.pid, process.version]);
    } catch (error) {
      link.postSnapshot(frame.startFailed, 0, 0, exportError(exporter, error));
      link.close();
    }
  }
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

/** The parent has closed the channel, or is gone. What a process has printed is written first. */
function leave(): void {
  const streams = isProcess ? [process.stdout, process.stderr] : [];
  let unwritten = 1;
  const oneLess = (): void => {
    unwritten -= 1;
    if (unwritten === 0) process.exit(0);
  };
  for (const stream of streams) {
    if (stream.writableLength === 0) continue;
    unwritten += 1;
    stream.write('', oneLess);
  }
  oneLess();
}

markAsHost();
const ticket = readTicket();
prepareProcess(ticket);
start(ticket);
