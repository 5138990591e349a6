// State that the loops of a server and of units share, in processes of their own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnitContext } from '../../src/public.js';
import { atomically, tvar } from '../../src/stm/index.js';
import { ask, portOf } from '../serve/client.js';
import { open, program, skip } from '../serve/served.js';
import { startLoops } from '../units/loops.js';

const stm = new URL('../../src/stm/index.js', import.meta.url).href;

/** Adds 1 for each request while the module of the loop has it from its start on. */
const counting = `
  import { atomically, named, tvar } from '${stm}';
  const hits = named('hits', () => tvar(0));
  export default (request, response) => {
    const count = atomically(() => {
      hits.set(hits.get() + 1);
      return hits.get();
    });
    setTimeout(() => response.end(process.pid + ' ' + count), 5);
  };`;

test('what has a name is one in all loops of a server', { skip }, async (t) => {
  const app = program(t, 'app.mjs', counting);
  const server = await open(t, app, { processes: 2, loops: 2, port: 0 });
  const processes = new Set<string>();
  const counts: number[] = [];
  for (let round = 1; processes.size < 2; round += 1) {
    assert.ok(round < 100, 'one process gets all connections');
    // Together: a process with open connections is not chosen again.
    const answers = await Promise.all(Array.from({ length: 16 }, () => ask(portOf(server))));
    for (const { body } of answers) {
      const [pid = '', count] = body.split(' ');
      processes.add(pid);
      counts.push(Number(count));
    }
    counts.sort((a, b) => a - b);
    assert.deepEqual(
      counts,
      counts.map((_, at) => at + 1),
    );
  }
});

test('units that captured a variable share it', { skip }, async (t) => {
  const loops = startLoops(t);
  const count = tvar(0);
  await loops.deploy(
    ({ bus }: UnitContext) => {
      bus.consumer('add', (message) => {
        atomically(() => count.set(count.get() + 1));
        message.reply(process.pid);
      });
    },
    { instances: 2 },
  );
  const pids = new Set<unknown>();
  for (let asked = 1; asked <= 10; asked += 1) {
    pids.add((await loops.bus.request('add', null)).body);
    assert.equal(count.peek(), asked);
  }
  assert.equal(pids.size, 2);
});
