// Workers against the contract of all kinds. Those in partitions: test/partitions/contract.test.ts.

import { testWorker } from '../conformance/worker.js';

testWorker({ name: 'process', worker: 'process', isPartition: false });
testWorker({ name: 'thread', worker: 'thread', isPartition: false });
