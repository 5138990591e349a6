// Vert.x's cases of units that deploy others (DeploymentTest).

import assert from 'node:assert/strict';
import type { UnitContext } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { speaking, type UnitCase } from './case.js';

/** A parent whose start fails after the start of its child. */
const failedParent = (name: string): UnitCase => ({
  name,
  expects: 'the children of a unit that could not start are undeployed',
  run: async ({ loops, address, said }) => {
    const child = speaking(address);
    const parent = async ({ deploy }: UnitContext) => {
      await deploy(child);
      throw new Error('of the parent');
    };
    await assert.rejects(loops.deploy(parent), { code: 'UNIT_START_FAILED' });
    assert.deepEqual(await said(2), ['start', 'stop']);
    await waitFor(() => loops.deployments.length === 0);
  },
});

export const childCases: readonly UnitCase[] = [
  {
    name: 'testSimpleChildDeployment',
    expects: 'a unit deploys a child, without waiting for it',
    run: async ({ loops, address, said }) => {
      const child = speaking(address, ' child');
      const parent = ({ bus, deploy }: UnitContext) => {
        void deploy(child).then(() => bus.send(address, 'deployed'));
        bus.send(address, 'start');
      };
      const deployment = await loops.deploy(parent);
      assert.deepEqual(await said(3), ['deployed', 'start', 'start child']);
      await deployment.undeploy();
    },
  },
  {
    name: 'testSimpleChildUndeploymentOrder',
    expects: 'the stop of a child is called before that of its parent',
    run: async ({ loops, address, words, said }) => {
      const child = speaking(address, ' child');
      const parent = async ({ bus, deploy }: UnitContext) => {
        await deploy(child);
        return () => void bus.send(address, 'stop');
      };
      const deployment = await loops.deploy(parent);
      assert.equal(loops.deployments.length, 2);
      await deployment.undeploy();
      await said(3);
      assert.deepEqual(words, ['start child', 'stop child', 'stop']);
      assert.equal(loops.deployments.length, 0);
    },
  },
  {
    name: 'testSimpleChildUndeploymentDeployedAfterParentFailure',
    expects: 'a child that starts after the failure of its parent is undeployed',
    run: async ({ loops, address, said }) => {
      const child = async ({ bus }: UnitContext) => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        bus.send(address, 'start');
        return () => void bus.send(address, 'stop');
      };
      const parent = ({ deploy }: UnitContext) => {
        deploy(child).catch(() => {});
        throw new Error('of the parent');
      };
      await assert.rejects(loops.deploy(parent), { code: 'UNIT_START_FAILED' });
      await waitFor(() => loops.deployments.length === 0);
      await said(0);
    },
  },
  {
    name: 'testChildUndeployedDirectly',
    expects: 'a child that was undeployed is no matter when its parent ends',
    run: async ({ loops, address, said }) => {
      const child = speaking(address);
      const parent = async ({ deploy }: UnitContext) => {
        const deployed = await deploy(child);
        await deployed.undeploy();
      };
      const deployment = await loops.deploy(parent);
      assert.deepEqual(await said(2), ['start', 'stop']);
      await deployment.undeploy();
    },
  },
  {
    name: 'testDeployChildOnParentUndeploy',
    expects: 'a unit that ends deploys no child any more',
    run: async ({ loops }) => {
      const parent =
        ({ deploy }: UnitContext) =>
        async () =>
          void (await deploy(() => {}));
      const deployment = await loops.deploy(parent);
      await assert.rejects(deployment.undeploy(), { code: 'UNIT_STOP_FAILED' });
      assert.equal(loops.deployments.length, 0);
    },
  },
  {
    name: 'testUndeployParentDuringChildDeployment',
    expects: 'the end of a parent fails the start of its child',
    run: async ({ loops, address, said }) => {
      const child = {
        async start({ bus }: UnitContext) {
          bus.send(address, 'child starts');
          await new Promise(() => {});
        },
        stop() {
          throw new Error('stop was called');
        },
      };
      const parent = ({ deploy }: UnitContext) => void deploy(child).catch(() => {});
      const deployment = await loops.deploy(parent);
      await said(1);
      await deployment.undeploy();
      assert.equal(loops.deployments.length, 0);
    },
  },
  failedParent('testSimpleChildUndeploymentOnParentAsyncFailure'),
  failedParent('testSimpleChildUndeploymentOnParentSyncFailure'),
];
