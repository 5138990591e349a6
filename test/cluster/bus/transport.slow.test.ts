// The bus over NATS against the contract of transports.

import { testTransport } from '../../conformance/transport.js';
import { joinBus, skip, startServer } from '../server.js';

testTransport({
  name: 'NATS',
  skip,
  open: async (t) => {
    const server = await startServer(t);
    const [sender, receiver] = [await joinBus(t, server), await joinBus(t, server)];
    return { sender: sender.bus, receiver: receiver.bus };
  },
});
