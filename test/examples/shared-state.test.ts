// The examples of shared state, each served from several processes.

import assert from 'node:assert/strict';
import { get } from 'node:http';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ServedApp } from '../../src/serve/index.js';
import { ask, portOf } from '../serve/client.js';
import { open, skip } from '../serve/served.js';
import { waitFor } from '../support/index.js';

const example = (name: string): string =>
  fileURLToPath(new URL(`../../../examples/shared-state/${name}.js`, import.meta.url));
const size = { processes: 2, loops: 1, port: 0 };

/** The answer to one request with this cookie. */
function askWith(server: ServedApp, cookie: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { port: portOf(server), host: '127.0.0.1', agent: false, headers: { cookie } };
    get(options, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        body += piece;
      });
      response.on('end', () => resolve(body));
    }).on('error', reject);
  });
}

test('a client has five requests, whichever processes answer', { skip }, async (t) => {
  const server = await open(t, example('rate-limiter'), size);
  const statuses: number[] = [];
  for (let asked = 0; asked < 8; asked += 1) statuses.push((await ask(portOf(server))).status);
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
});

test('a session counts in each process', { skip }, async (t) => {
  const server = await open(t, example('sessions'), size);
  assert.equal((await ask(portOf(server))).status, 401);
  const { headers } = await ask(portOf(server), '/login?name=ada');
  const [cookie = ''] = [headers['set-cookie'] ?? ''].flat();
  for (let page = 1; page <= 8; page += 1) {
    assert.equal(await askWith(server, cookie), `ada: page ${page}\n`);
  }
});

test('points that come to any process are shown at once, and live', { skip }, async (t) => {
  const server = await open(t, example('leaderboard'), size);
  const port = portOf(server);
  let shown = '';
  const live = get({ port, path: '/live', host: '127.0.0.1', agent: false }, (response) => {
    response.setEncoding('utf8').on('data', (piece: string) => {
      shown += piece;
    });
  });
  live.on('error', () => {}); // ended by the test
  await waitFor(() => shown.includes('data: []'));
  for (const [name, points] of Object.entries({ ada: 3, alan: 5, grace: 4 })) {
    await ask(port, `/points?name=${name}&add=${points}`, undefined, 'POST');
  }
  const { body } = await ask(port, '/points?name=ada&add=4', undefined, 'POST');
  const board = [
    { name: 'ada', points: 7 },
    { name: 'alan', points: 5 },
    { name: 'grace', points: 4 },
  ];
  assert.deepEqual(JSON.parse(body), board);
  for (let asked = 0; asked < 6; asked += 1) {
    assert.deepEqual(JSON.parse((await ask(port)).body), board);
  }
  await waitFor(() => shown.includes(JSON.stringify(board)));
  live.destroy();
});
