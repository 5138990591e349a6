// The program of the thread that stack-watch.ts starts.

import { workerData } from 'node:worker_threads';
import { overSocket, Wire } from '../channels/index.js';
import { type FromProcess, parseToProcess } from './protocol.js';
import { stackOfMainThread } from './stack.js';

const wire = new Wire<FromProcess>(overSocket(Number(workerData)));
wire.onMessage = async (message) => {
  const asked = parseToProcess(message);
  if (asked.type !== 'askStack') return;
  wire.post({ type: 'stack', index: asked.index, stack: await stackOfMainThread() });
};
