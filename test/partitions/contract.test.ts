// Workers in partitions against the contract of all kinds of workers.

import { testWorker } from '../conformance/worker.js';
import { skip, skipVm } from './support.js';

testWorker({ name: 'sandbox', worker: { kind: 'sandbox' }, isPartition: true, skip });
for (const engine of ['uml', 'gvisor'] as const) {
  // The largest values are there several times.
  const worker = { kind: 'vm', engine, memoryMb: 256 } as const;
  testWorker({ name: engine, worker, isPartition: true, skip: skipVm(engine) });
}
