// Every kind of channel against its contract.

import { testChannel } from './channel.js';

testChannel({ kind: 'socket', host: 'process' });
testChannel({ kind: 'memory', host: 'thread' });
