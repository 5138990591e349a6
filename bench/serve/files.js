// A folder of files over plain `http`: `files.js`, by serveStatic or by `send` alone.
import { createServer } from 'node:http';
import send from 'send';

const { PORT, ROOT, BY } = process.env;
let listener = (request, response) => send(request, request.url, { root: ROOT }).pipe(response);
if (BY === 'manycore') {
  const { serveStatic } = await import('../../dist/bundle/static.js');
  listener = serveStatic(ROOT);
}
createServer((request, response) => listener(request, response)).listen(Number(PORT), '127.0.0.1');
