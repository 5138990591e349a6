// The program of a server's processes and of their loops in threads.

import { isMainThread } from 'node:worker_threads';
import { acceptChannel } from '../../channels/index.js';
import { takeWorkerData } from '../../lib/index.js';
import { adoptSpace } from '../../worker/index.js';
import { Loop } from '../loop/loop.js';
import { markAsServed } from '../loop/program-loop.js';
import type { FromLoop } from '../protocol.js';
import { threadPort, WireLink } from '../shared/link.js';
import { type LoopTicket, parseTicket } from '../tickets.js';
import { ignoreLostOutput } from './mark-output.js';
import { ServeProcess } from './process.js';

function startLoop(ticket: LoopTicket): void {
  const up = new WireLink<FromLoop>(acceptChannel(ticket.channel).channel, threadPort, {
    onEnvelope: (envelope) => loop.receive(envelope),
  });
  const loop = new Loop({ ...ticket, up, onFirstClient: undefined, onDrained: () => up.unref() });
  void loop.start();
}

/** A process gets its ticket as its one argument, a thread as its data. Both are hidden from the program. */
const ticket = parseTicket(
  isMainThread ? JSON.parse(process.argv.splice(2, 1)[0] ?? 'null') : takeWorkerData(),
);
if (ticket.kind === 'loop') {
  startLoop(ticket);
} else if (ticket.kind === 'process') {
  markAsServed();
  adoptSpace(ticket.system.kind === 'native' ? ticket.system.spaceFd : undefined);
  process.title = `manycore serve ${ticket.app.name} ${ticket.process}`;
  if (ticket.marksOutput) ignoreLostOutput();
  new ServeProcess(ticket, new URL(import.meta.url)).start();
}
