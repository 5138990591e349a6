// The bus between programs of one machine against the contract of transports; over sockets: portable.test.ts.

import { nativeBinding } from '../../../src/native.js';
import { testTransport } from '../../conformance/transport.js';
import { openLocal, useFolder } from './buses.js';

useFolder();
testTransport({
  name: 'local bus over shared memory',
  skip: nativeBinding() === undefined && 'needs the native binary',
  lostCode: 'BUS_CONSUMER_LOST',
  open: openLocal,
});
