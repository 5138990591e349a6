// Two programs on a NATS server, or on the bus of this machine (manycore-local): `{ ask, end() }` of the requesting
// one, by the name of the protocol.
// As a program of its own it is the answering one: `node ends.js NAME URL`.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { natsServer } from '../../scripts/lib/debian-program.mjs';

const self = fileURLToPath(import.meta.url);
const secret = 'a secret of the benchmark';
const local = 'manycore-local';

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

export async function openEnds(name) {
  if (name === local) return await openLocal();
  const program = await natsServer();
  if (program === undefined) throw new Error('this case needs nats-server: apt-get install it');
  const port = await freePort();
  const server = spawn(program, ['-a', '127.0.0.1', '-p', String(port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await once(server.stderr, 'data');
  const url = `nats://127.0.0.1:${port}`;
  const answerer = fork(self, [name, url]);
  await once(answerer, 'message');
  return {
    ask: await asker(name, url),
    end: () => {
      answerer.kill();
      server.kill();
    },
  };
}

/** The address is the name of a bus. */
async function openLocal() {
  const bus = `bench-${process.pid}`;
  const answerer = fork(self, [local, bus]);
  await once(answerer, 'message');
  return { ask: await asker(local, bus), end: () => answerer.kill() };
}

async function connectBare(url) {
  const { connect } = await import('@nats-io/transport-node');
  return await connect({ servers: url });
}

async function joinManycore(name, url) {
  const { bus, cluster } = await import('manycore');
  if (name === local) await cluster({ transport: 'local', name: url });
  else await cluster({ nats: url, secret: name === 'manycore-signed' ? secret : undefined });
  return bus;
}

/** Numbers travel as text unless the protocol encodes them. */
async function asker(name, url) {
  if (name === 'nats') {
    const connection = await connectBare(url);
    const options = { timeout: 10_000 };
    return async (n) => Number((await connection.request('echo', String(n), options)).string());
  }
  const bus = await joinManycore(name, url);
  return async (n) => (await bus.request('echo', n)).body;
}

async function answer(name, url) {
  if (name === 'nats') {
    const connection = await connectBare(url);
    const callback = (_error, message) => message.respond(message.data);
    connection.subscribe('echo', { queue: 'consumers', callback });
    await connection.flush();
  } else {
    const bus = await joinManycore(name, url);
    bus.consumer('echo', (message) => message.reply(message.body));
    await bus.drained();
  }
  process.send('ready');
}

if (process.argv[1] === self) await answer(process.argv[2], process.argv[3]);
