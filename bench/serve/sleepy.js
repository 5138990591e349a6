// Each request holds its loop for 20 ms without using a core, like a synchronous system call. So one machine
// can hold many loops' worth of load.
import { createServer } from 'node:http';

const never = new Int32Array(new SharedArrayBuffer(4));

createServer((_request, response) => {
  Atomics.wait(never, 0, 0, 20);
  response.end('done');
}).listen(0, '127.0.0.1');
