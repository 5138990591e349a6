// The shm channel against the contract of all channels, to both kinds of workers.

import { testChannel } from '../conformance/channel.js';

testChannel({ kind: 'shm', worker: 'process' });
testChannel({ kind: 'shm', worker: 'thread' });
testChannel({ kind: 'shm', worker: 'process', isIsolated: true });
