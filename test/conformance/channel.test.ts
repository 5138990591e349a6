// The kinds of channels that need no native binary against their contract; the same suite runs on
// shm in test/channels/shm-conformance.test.ts.

import { testChannel } from './channel.js';

testChannel({ kind: 'socket', worker: 'process' });
testChannel({ kind: 'memory', worker: 'thread' });
