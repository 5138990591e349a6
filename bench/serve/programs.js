// CGI programs over plain `http`, from a server with 500 MiB of memory: by serveCgi, or by
// `child_process.spawn` as one would write it.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';

const { PORT, ROOT, BY } = process.env;
const ballast = Buffer.alloc(500 * 2 ** 20, 1);

function bySpawn(request, response) {
  const file = join(ROOT, request.url.slice(1));
  const env = {
    PATH: process.env.PATH,
    REQUEST_METHOD: request.method,
    GATEWAY_INTERFACE: 'CGI/1.1',
  };
  const child = spawn(file, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  request.pipe(child.stdin);
  let head = '';
  const onHead = (chunk) => {
    head += chunk.toString('latin1');
    const end = head.indexOf('\n\n');
    if (end < 0) return;
    child.stdout.off('data', onHead);
    for (const line of head.slice(0, end).split('\n')) {
      const [name, value] = line.split(': ');
      response.setHeader(name, value);
    }
    response.write(Buffer.from(head.slice(end + 2), 'latin1'));
    child.stdout.pipe(response);
  };
  child.stdout.on('data', onHead);
}

let listener = bySpawn;
if (BY === 'manycore') {
  const { serveCgi } = await import('../../dist/bundle/cgi.js');
  listener = serveCgi(ROOT);
}
createServer((request, response) => {
  if (request.url === '/memory') response.end(String(ballast[0]));
  else listener(request, response);
}).listen(Number(PORT), '127.0.0.1');
