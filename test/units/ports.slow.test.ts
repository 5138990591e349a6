// Several instances on one port, in several loops and in one.

import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { waitFor } from '../support/index.js';
import { appUrl, startLoops } from './loops.js';

/** Sends so many requests at once, each over a connection of its own; returns the instances that answered. */
async function answers(port: number, count: number): Promise<string[]> {
  const ask = async (): Promise<string> => {
    const headers = { connection: 'close' };
    return await (await fetch(`http://127.0.0.1:${port}/`, { headers })).text();
  };
  return await Promise.all(Array.from({ length: count }, ask));
}

async function start(t: TestContext, instances: number) {
  const loops = startLoops(t);
  const config = { port: 0 };
  const deployment = await loops.deploy(appUrl('hello'), { instances, config });
  const addresses = await loops.addresses();
  assert.equal(addresses.length, 1, 'all instances listen on one socket');
  const [address] = addresses;
  assert.ok(typeof address === 'object');
  return { loops, deployment, port: address.port };
}

test('instances share a port, also those of one loop', async (t) => {
  const { port } = await start(t, 4);
  const found = new Set<string>();
  await waitFor(async () => {
    for (const each of await answers(port, 40)) found.add(each);
    return found.size >= 4;
  });
  assert.equal(found.size, 4);
});

test('an instance that ends leaves the port to the others', async (t) => {
  const { deployment, port } = await start(t, 4);
  await deployment.scale(1);
  assert.equal(new Set(await answers(port, 20)).size, 1);
  await deployment.undeploy();
  await assert.rejects(answers(port, 1));
});

test('two deployments have different sockets for port 0', async (t) => {
  const { loops, port } = await start(t, 2);
  await loops.deploy(appUrl('hello'), { instances: 2, config: { port: 0 } });
  assert.equal((await loops.addresses()).length, 2);
  await answers(port, 2);
});

/** Sends requests over and over, eight at a time, until it is stopped. */
function load(port: number, agent: Agent) {
  let [isOver, answered] = [false, 0];
  const ask = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, agent };
      const asked = request(options, (response) => response.resume().on('end', resolve));
      asked.on('error', reject).end();
    });
  const askOn = async (): Promise<void> => {
    while (!isOver) {
      await ask();
      answered += 1;
    }
  };
  const all = Promise.all(Array.from({ length: 8 }, askOn));
  return {
    /** Resolves when so many more were answered. Rejects when one was lost. */
    more: async (count: number): Promise<void> => {
      const wanted = answered + count;
      await Promise.race([all, waitFor(() => answered >= wanted)]);
    },
    stop: async (): Promise<void> => {
      isOver = true;
      await all;
    },
  };
}

const nodeMajor = Number.parseInt(process.versions.node, 10);
const losesNew = 'server.close() of Node 26 ends connections whose first request has not come yet';

for (const [app, processes, loops, keepAlive] of [
  ['hello', 1, 2, false],
  ['hello', 2, 1, false],
  ['hello', 1, 2, true],
  ['hello', 2, 1, true],
  ['closing', 1, 2, false],
  ['closing', 2, 1, false],
] as const) {
  const how = `${app}, ${keepAlive ? 'kept' : 'short'} connections, ${processes} × ${loops} loops`;
  const isLost = app === 'closing' && nodeMajor >= 26 && losesNew;
  test(`no request is lost while instances come and go: ${how}`, {
    skip: isLost,
  }, async (t) => {
    const running = startLoops(t, { processes, loops });
    const deployment = await running.deploy(appUrl(app), {
      instances: 2,
      config: { port: 0 },
    });
    const [address] = await running.addresses();
    assert.ok(typeof address === 'object');
    const agent = new Agent({ keepAlive });
    t.after(() => agent.destroy());
    const asking = load(address.port, agent);
    for (let round = 0; round < 40; round += 1) {
      await deployment.scale(1);
      await asking.more(16);
      await deployment.scale(2);
      await asking.more(16);
    }
    await asking.stop();
  });
}
