// Random graphs of modules: a call with what they export is as at home, or refused, however the program
// was started. MANYCORE_RUNS=1000 runs a campaign.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { random, seeded } from '../../support/index.js';
import { programFolder, runNode } from '../programs.js';
import { moduleGraph } from './module-graphs.js';

const programs = Number(process.env['MANYCORE_RUNS'] ?? 6);

test('a call with exports of random modules is as at home, or refused', async (t) => {
  const { seed } = random(t);
  const counts = { same: 0, refused: 0 };
  const seeds = Array.from({ length: programs }, (_, at) => seed + at).values();
  const runSome = async (): Promise<void> => {
    for (const each of seeds) {
      const { files, start } = moduleGraph(seeded(each));
      const [folder, args, stdin] = start;
      const { lines, stderr, exitCode } = await runNode(
        `${programFolder(t, files)}/${folder}`,
        args,
        stdin,
      );
      const where = `MANYCORE_RUNS=1 MANYCORE_SEED=${each}: cd ${folder}; node ${args.join(' ')}`;
      assert.equal(stderr, '', where);
      assert.equal(exitCode, 0, where);
      const wrong = lines.filter((line) => line.startsWith('["differs"'));
      assert.deepEqual(wrong, [], where);
      const loaded = lines.filter((line) => line.startsWith('["loaded'));
      assert.deepEqual(loaded, [...new Set(loaded)], `no worker loads it again: ${where}`);
      const counted = lines.filter((line) => line.startsWith('{'));
      assert.equal(counted.length, 1, where);
      const found = JSON.parse(counted[0] ?? '{}');
      counts.same += found.same;
      counts.refused += found.refused;
    }
  };
  await Promise.all([runSome(), runSome()]);
  t.diagnostic(`${counts.same} calls as at home, ${counts.refused} refused`);
  assert.ok(counts.same > counts.refused, 'most travel');
});
