// Answers with its loop, and counts in memory; blocks when asked to.

import { createServer } from 'node:http';
import { self, stickyId } from '../../../src/serve/public.js';

createServer(({ url = '' }, response) => {
  if (url.startsWith('/exit')) process.exit(7);
  if (url.startsWith('/block')) {
    for (const end = performance.now() + 300; performance.now() < end; );
  }
  const { process: number, loop } = self;
  const answer = JSON.stringify({ loop: `${number}.${loop}`, pid: process.pid, id: stickyId() });
  if (url.startsWith('/cookies')) response.setHeader('Set-Cookie', ['own=1', 'other=2']);
  if (url.startsWith('/object')) response.writeHead(200, { 'set-cookie': 'own=1' });
  if (url.startsWith('/array')) response.writeHead(200, ['Set-Cookie', 'own=1', 'x-a', '1']);
  if (url.startsWith('/head')) response.writeHead(200, 'fine', { 'x-a': '1' });
  response.end(answer);
}).listen(Number(process.env['PORT'] ?? 0));
