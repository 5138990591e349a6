// `fetch` handlers as listeners, without a server of processes around them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fetchListener } from '../../../src/serve/loop/fetch.js';

test('over HTTP/2 a status text is left out, and Node has nothing to warn of', async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const listener = fetchListener(() => new Response('here', { status: 201, statusText: 'Made' }));
  const server = createServer((request, response) => listener(Object(request), Object(response)));
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port }: { port: number } = Object(server.address());
  const client = connect(`http://127.0.0.1:${port}`);
  t.after(() => client.close());
  const stream = client.request({ ':path': '/' });
  const [headers] = await once(stream, 'response');
  assert.equal(headers[':status'], 201);
  assert.equal(await text(stream), 'here');
  assert.deepEqual(warnings, []);
});
