// The shm channel against the contract of all channels, to both kinds of hosts.

import { testChannel } from '../conformance/channel.js';

testChannel({ kind: 'shm', host: 'process' });
testChannel({ kind: 'shm', host: 'thread' });
