// Units and the bus between loops without the native core: over Unix sockets. All tests of test/units that need no
// core pass with `MANYCORE_NATIVE=off`, too; these are run always.

import '../support/native-off.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeBinding } from '../../src/native.js';
import type { UnitContext } from '../../src/public.js';
import { isRunning, waitFor } from '../support/index.js';
import { startLoops } from './loops.js';

test('the native core is not there', () => {
  assert.equal(nativeBinding(), undefined);
});

for (const options of [
  { processes: 2, loops: 1 },
  { processes: 1, loops: 2 },
]) {
  const name = `${options.processes} × ${options.loops} loops`;
  test(`instances on all loops get messages of each other and of the program, ${name}`, async (t) => {
    const loops = startLoops(t, options);
    await loops.deploy(
      ({ bus, instance }: UnitContext) => {
        bus.consumer('who', (message) => message.reply(instance));
        bus.consumer(`ask ${instance}`, async (message) => {
          const answers = new Set<unknown>();
          while (answers.size < 2) answers.add((await bus.request('who', 0)).body);
          message.reply([...answers].sort());
        });
        bus.consumer<Buffer>('large', (message) => message.reply(message.body.length));
      },
      { instances: 2 },
    );
    for (const instance of [0, 1]) {
      assert.deepEqual((await loops.bus.request(`ask ${instance}`, 0)).body, [0, 1]);
    }
    const sizeBytes = 8 * 2 ** 20;
    const large = await loops.bus.request('large', Buffer.alloc(sizeBytes));
    assert.equal(large.body, sizeBytes);
  });
}

test('instances of a process that is killed start again, and get messages', async (t) => {
  const loops = startLoops(t, { processes: 2, loops: 1 });
  await loops.deploy(
    ({ bus, instance }: UnitContext) =>
      void bus.consumer(`pid ${instance}`, (message) => message.reply(process.pid)),
    { instances: 2 },
  );
  const pids = async (): Promise<number[]> => {
    const answers = [0, 1].map((at) => loops.bus.request<number>(`pid ${at}`, 0));
    return (await Promise.all(answers)).map(({ body }) => body);
  };
  const [killed = 0, other = 0] = await pids();
  assert.notEqual(killed, other);
  process.kill(killed, 'SIGKILL');
  await waitFor(() => !isRunning(killed));
  // In the process that replaces it, or in the other one where that is late.
  await waitFor(async () => !(await pids()).includes(killed));
  assert.equal((await pids())[1], other);
});

test('an instance that may block has a thread, which is a member as well', async (t) => {
  const loops = startLoops(t, { processes: 1, loops: 1 });
  await loops.deploy(
    ({ bus }: UnitContext) => void bus.consumer('side', (message) => message.reply('here')),
    { on: 'blocking' },
  );
  assert.equal((await loops.bus.request('side', 0)).body, 'here');
});
