// The program of the thread that stack-watch.ts starts.

import { workerData } from 'node:worker_threads';
import { overSocket, Wire } from '../../channels/index.js';
import { type FromProcess, parseToProcess } from '../protocol.js';
import { stackOfMainThread } from './stack.js';

const wire = new Wire<FromProcess>(overSocket(Number(workerData)), {
  onMessage: (message) => void answer(message),
});

async function answer(message: unknown): Promise<void> {
  const request = parseToProcess(message);
  if (request.type !== 'takeStack') return;
  wire.post({ type: 'stack', index: request.index, stack: await stackOfMainThread() });
}
