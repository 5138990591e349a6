// A program whose servers listen with SO_REUSEPORT: `share-port.js PROGRAM`. Needs Node 22.12.
import { Server } from 'node:net';
import { pathToFileURL } from 'node:url';

const { listen } = Server.prototype;
Server.prototype.listen = function (port, host) {
  return Reflect.apply(listen, this, [{ port, host, reusePort: true }]);
};
await import(pathToFileURL(process.argv[2]).href);
