// One deployment of the director, on loops whose answers the test gives.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defer } from '../../src/lib/index.js';
import { DirectedDeployment } from '../../src/units/director/deployment.js';
import { fillDeployOptions } from '../../src/units/options.js';

test('a start whose answer crosses its undeployment gives no deployment', async () => {
  const begins = defer<void>();
  const stops = defer<void>();
  const started = defer<void>();
  const stopped: number[] = [];
  const source = { kind: 'value', value: class Sum {} } as const;
  const deployment = new DirectedDeployment({
    id: 1,
    source,
    options: fillDeployOptions(source, {}),
    parent: undefined,
    place: () => [{ loop: 0, pid: 1 }],
    start: async (placed) => {
      begins.resolve();
      await started.promise;
      for (const each of placed) each.state = 'running';
    },
    stop: async (placed) => {
      stopped.push(...placed.map(({ instance }) => instance));
      stops.resolve();
    },
    settled: async () => {},
    move: async () => {},
    redeploy: async () => {},
    health: async () => [],
    onEnded: () => {},
  });
  const begun = deployment.begin();
  await begins.promise;
  const undeployed = deployment.undeploy();
  await stops.promise;
  started.resolve(); // the loop had started it when the stop came
  await assert.rejects(begun, {
    code: 'UNIT_START_FAILED',
    message: 'Sum could not start: it was undeployed meanwhile: deploy it again',
  });
  assert.deepEqual(deployment.placed, []); // it has ended before its caller is notified
  await undeployed;
  assert.deepEqual(stopped[0], 0);
});
