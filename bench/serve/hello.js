// The measured server: plain Node, the same for every way of running it.
import { createServer } from 'node:http';

const body = 'hello world';
const headers = { 'content-type': 'text/plain', 'content-length': String(body.length) };

createServer((_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
}).listen(Number(process.env.PORT), '127.0.0.1');
