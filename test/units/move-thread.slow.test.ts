// Instances in threads that move to other loops, whose thread dies in the middle. The move itself is tested
// in side.slow.test.ts, other faults in move.slow.test.ts.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Loops, UnitContext } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { startLoops } from './loops.js';

interface Counted {
  readonly count: number;
  readonly loop: number;
}

async function counted(loops: Loops): Promise<Counted> {
  return (await loops.bus.request<Counted>('count', 0)).body;
}

/** Limits the memory of processes started in this test: it must not take all of the machine's. */
function limitMemory(t: TestContext, isWanted: boolean): void {
  const before = process.env['NODE_OPTIONS'];
  if (!isWanted) return;
  process.env['NODE_OPTIONS'] = `${before ?? ''} --max-old-space-size=128`;
  t.after(() => {
    if (before === undefined) delete process.env['NODE_OPTIONS'];
    else process.env['NODE_OPTIONS'] = before;
  });
}

/** Counts, and dies in `save` when it is configured to. */
function mortal({ bus, loop, config }: UnitContext<string>) {
  let count = 0;
  bus.consumer('count', (message) => {
    count += 1;
    message.reply({ count, loop });
  });
  return {
    save: () => {
      if (config === 'exits') process.exit(3);
      const kept: number[][] = [];
      while (config === 'exhausts') kept.push(new Array<number>(2 ** 16).fill(0.5));
    },
  };
}

for (const [how, why] of [
  ['exits', 'it called process\\.exit\\(\\)'],
  ['exhausts', 'Worker terminated due to reaching memory limit'],
] as const) {
  test(`save ${how}: the instance is started again in another thread`, async (t) => {
    limitMemory(t, how === 'exhausts');
    const loops = startLoops(t);
    const deployment = await loops.deploy(mortal, { on: 'blocking', config: how });
    const before = await counted(loops);
    const pids = loops.loops.map(({ pid }) => pid);
    const to = loops.loops.find(({ loop }) => loop !== before.loop)?.loop ?? -1;
    await assert.rejects(deployment.move(0, to), {
      code: 'UNIT_MOVE_FAILED',
      message: new RegExp(`its thread has ended, and it is started again: ${why}`),
    });
    assert.equal((await waitFor(() => counted(loops))).count, 1, 'without its state');
    await waitFor(async () => (await deployment.status())[0]?.state === 'running');
    const after = loops.loops.map(({ pid }) => pid);
    assert.deepEqual(after, pids, 'no process was lost with it');
  });
}
