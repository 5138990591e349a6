// The bus over NATS against the contract of transports.

import { testTransport } from '../../conformance/transport.js';
import { someOf } from '../../support/index.js';
import { joinBus, skip, startServer } from '../server.js';

for (const secret of someOf(['nobody else knows this', undefined], 1)) {
  testTransport({
    name: secret === undefined ? 'NATS' : 'NATS with a secret',
    skip,
    open: async (t) => {
      const server = await startServer(t);
      const join = () => joinBus(t, server, secret === undefined ? {} : { secret });
      const [sender, receiver] = [await join(), await join()];
      return { sender: sender.bus, receiver: receiver.bus };
    },
  });
}
