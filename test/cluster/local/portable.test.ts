// The bus between programs of one machine without the native core: the connections are the channels.

import '../../support/native-off.js';
import { testTransport } from '../../conformance/transport.js';
import { openLocal, useFolder } from './buses.js';

useFolder();
testTransport({ name: 'local bus over sockets', lostCode: 'BUS_CONSUMER_LOST', open: openLocal });
