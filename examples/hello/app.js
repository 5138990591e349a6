// An ordinary server: `manycore serve examples/hello/app.js` runs it on every core.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  response.end(`hello from process ${process.pid}: ${request.url}\n`);
});

server.listen(Number(process.env.PORT ?? 3000));
