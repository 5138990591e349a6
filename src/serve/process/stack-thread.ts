// The program of the thread that stack-watch.ts starts.

import { workerData } from 'node:worker_threads';
import { overSocket } from '../../channels/index.js';
import { type ArrivedEnvelope, type FromProcess, parseToProcess } from '../protocol.js';
import { threadPort, WireLink } from '../shared/link.js';
import { stackOfMainThread } from './stack.js';

const link = new WireLink<FromProcess>(overSocket(Number(workerData)), threadPort, {
  onEnvelope: (envelope) => void answer(envelope),
});

async function answer(envelope: ArrivedEnvelope): Promise<void> {
  const request = parseToProcess(envelope);
  if (request.type !== 'takeStack') return;
  link.post({ body: { type: 'stack', index: request.index, stack: await stackOfMainThread() } });
}
