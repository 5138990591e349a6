// Vert.x's cases of deployments that end, also in the middle of a start (DeploymentTest).

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { UnitContext } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { speaking, type UnitCase } from './case.js';
import { startHere } from './place.js';

const ends = (name: string, isAsync: boolean): UnitCase => ({
  name,
  expects: 'stop is called, and the deployment is gone when it has ended',
  run: async ({ loops, address, said }) => {
    const unit =
      ({ bus }: UnitContext) =>
      async () => {
        if (isAsync) await new Promise((resolve) => setTimeout(resolve, 5));
        bus.send(address, 'stop');
      };
    const deployment = await loops.deploy(unit);
    await deployment.undeploy();
    assert.deepEqual(await said(1), ['stop']);
    assert.equal(loops.deployments.includes(deployment), false);
  },
});

const failing = (name: string, how: 'throws' | 'rejects' | 'throws no error'): UnitCase => ({
  name,
  expects: 'undeploy fails with what stop threw, and the deployment is gone',
  differs: 'It rejects with `UNIT_STOP_FAILED`, which has the text and, as cause, what stop threw.',
  run: async ({ loops }) => {
    const unit = () => async () => {
      if (how === 'rejects') await Promise.resolve();
      throw how === 'throws no error' ? 'BooFar!' : new Error('BooFar!');
    };
    const deployment = await loops.deploy(unit);
    await assert.rejects(deployment.undeploy(), {
      code: 'UNIT_STOP_FAILED',
      message: /BooFar!$/,
      cause: how === 'throws no error' ? 'BooFar!' : new Error('BooFar!'),
    });
    assert.equal(loops.deployments.includes(deployment), false);
  },
});

/** The same, of a unit that another one has deployed and undeploys. */
const failingChild = (name: string): UnitCase => ({
  ...failing(name, 'throws'),
  run: async ({ loops, address, said }) => {
    const parent = async ({ bus, deploy }: UnitContext) => {
      const child = await deploy(() => () => {
        throw new Error('BooFar!');
      });
      await child
        .undeploy()
        .catch((error: unknown) => bus.send(address, Reflect.get(Object(error), 'code')));
    };
    await using _ = await loops.deploy(parent);
    assert.deepEqual(await said(1), ['UNIT_STOP_FAILED']);
    assert.equal(loops.deployments.length, 1);
  },
});

const noHooks = (name: string): UnitCase => ({
  name,
  expects: 'close hooks of the context are called at its end',
  differs: '`context.signal` is aborted at the end of an instance; there are no other hooks.',
  run: async ({ loops, address, said }) => {
    const unit = ({ bus, signal }: UnitContext) => {
      for (const each of [1, 2]) signal.addEventListener('abort', () => bus.send(address, each));
    };
    const deployment = await loops.deploy(unit);
    await deployment.undeploy();
    assert.deepEqual(await said(2), [1, 2]);
  },
});

/** Collects garbage, and replies whether what a unit has left at `address` in this loop is gone. */
function collector(address: string): (context: UnitContext) => void {
  return ({ bus, instance }) => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    bus.consumer(`${address} ${instance}`, (message) => {
      collect();
      const left: readonly WeakRef<object>[] | undefined = Reflect.get(globalThis, address);
      message.reply(left === undefined ? [] : left.map((each) => each.deref() === undefined));
    });
  };
}

const collected = (name: string, listens: boolean): UnitCase => ({
  name,
  expects: 'an undeployed unit is collected',
  run: async ({ loops, address }) => {
    await using _ = await loops.deploy(collector(address), { instances: 2 });
    class Unit {
      start(): void {
        const before: readonly WeakRef<object>[] = Reflect.get(globalThis, address) ?? [];
        Reflect.set(globalThis, address, [...before, new WeakRef(this)]);
        if (listens) createServer((_request, response) => response.end()).listen(0);
      }
    }
    const unitsEach = 5;
    for (let at = 0; at < unitsEach; at += 1) {
      const deployment = await loops.deploy(Unit, { instances: 2 });
      await deployment.undeploy();
    }
    await waitFor(async () => {
      const asked = [0, 1].map((at) => loops.bus.request<boolean[]>(`${address} ${at}`, 0));
      const gone = (await Promise.all(asked)).flatMap(({ body }) => body);
      return gone.length === 2 * unitsEach && gone.every((each) => each);
    });
  },
});

export const endCases: readonly UnitCase[] = [
  ends('testUndeploy', false),
  ends('testAsyncUndeployCalledSynchronously', false),
  ends('testAsyncUndeploy', true),
  {
    name: 'testUndeployTwice',
    expects: 'a second undeploy fails',
    differs: 'A second `undeploy()` does nothing.',
    run: async ({ loops }) => {
      const deployment = await loops.deploy(() => {});
      await deployment.undeploy();
      await deployment.undeploy();
    },
  },
  {
    name: 'testUndeployInvalidID',
    expects: 'an unknown name of a deployment is refused',
    absent: 'A deployment is an object, not a name.',
  },
  failing('testUndeployExceptionInStop', 'throws'),
  failing('testUndeployErrorInStop', 'throws no error'),
  failing('testAsyncUndeployFailureCalledSynchronously', 'throws'),
  failing('testAsyncUndeployFailure', 'rejects'),
  failingChild('testDeployFromContextExceptionInStop'),
  failingChild('testDeployFromContextErrorInStop'),
  {
    name: 'testAsyncUndeployFailsAfterSuccess',
    expects: 'what stop throws after it has completed is reported, and undeploy succeeds',
    absent: 'A promise settles once: stop cannot complete and throw.',
  },
  {
    name: 'testDeployUndeployMultiple',
    expects: 'ten deployments at once start, and end',
    run: async ({ loops, address, said }) => {
      const ten = Array.from({ length: 10 }, () => loops.deploy(speaking(address)));
      const deployments = await Promise.all(ten);
      assert.equal(loops.deployments.length, 10);
      await Promise.all(deployments.map((each) => each.undeploy()));
      assert.equal((await said(20)).filter((word) => word === 'stop').length, 10);
      assert.equal(loops.deployments.length, 0);
    },
  },
  {
    name: 'testDeployUndeployMultipleInstancesUsingClassName',
    expects: 'ten instances of a deployment start, and end',
    run: async ({ loops, address, said }) => {
      const deployment = await loops.deploy(speaking(address), { instances: 10 });
      assert.equal((await said(10)).length, 10);
      assert.equal(loops.deployments.length, 1);
      assert.equal((await deployment.status()).length, 10);
      await deployment.undeploy();
      assert.equal((await said(20)).filter((word) => word === 'stop').length, 10);
    },
  },
  noHooks('testCloseHooksCalled'),
  noHooks('testFailedDeployRunsContextShutdownHook'),
  {
    name: 'testDeployWhenClosedShouldFail',
    expects: 'a deployment after the end is refused',
    run: async () => {
      await using loops = startHere();
      await loops.close();
      await assert.rejects(
        loops.deploy(() => {}),
        { code: 'LOOPS_CLOSED' },
      );
    },
  },
  {
    name: 'testUndeployAll',
    expects: 'the end undeploys all units and their children',
    run: async ({ address }) => {
      await using loops = startHere();
      const words: unknown[] = [];
      loops.bus.consumer(address, ({ body }) => words.push(body));
      const child = speaking(address);
      const parent = async ({ deploy }: UnitContext) => void (await deploy(child));
      await Promise.all(Array.from({ length: 10 }, () => loops.deploy(parent)));
      assert.equal(loops.deployments.length, 20);
      await loops.close();
      assert.equal(loops.deployments.length, 0);
    },
  },
  {
    name: 'testUndeployAllFailureInUndeploy',
    expects: 'the end succeeds when stop throws',
    differs: '`close()` ends everything, then rejects with the first `UNIT_STOP_FAILED`.',
    run: async () => {
      const loops = startHere();
      const unit = () => () => {
        throw new Error('of stop');
      };
      await Promise.all(Array.from({ length: 10 }, () => loops.deploy(unit)));
      await assert.rejects(loops.close(), { code: 'UNIT_STOP_FAILED' });
      assert.equal(loops.deployments.length, 0);
    },
  },
  {
    name: 'testUndeployAllNoDeployments',
    expects: 'the end without deployments does nothing',
    run: async () => {
      await startHere().close();
    },
  },
  {
    name: 'testFailedVerticleStopNotCalled',
    expects: 'stop of a unit that could not start is not called',
    run: async ({ loops, address, words }) => {
      const child = {
        start() {
          throw new Error('wibble');
        },
        stop() {
          throw new Error('stop was called');
        },
      };
      const parent = async ({ bus, deploy }: UnitContext) => {
        await deploy(child).catch((error: unknown) =>
          bus.send(address, Reflect.get(Object(error), 'message')),
        );
      };
      const deployment = await loops.deploy(parent);
      await deployment.undeploy();
      assert.equal(words.length, 1);
      assert.match(String(words[0]), /wibble$/);
    },
  },
  {
    name: 'testMultipleFailedDeploys',
    expects: 'a deployment of ten instances that cannot start fails once',
    run: async ({ loops }) => {
      const unit = (): never => {
        throw new Error('Fail to deploy.');
      };
      await assert.rejects(loops.deploy(unit, { instances: 10 }), { code: 'UNIT_START_FAILED' });
      assert.equal(loops.deployments.length, 0);
    },
  },
  {
    name: 'testDeployWithPartialFailure',
    expects: 'when one of three instances cannot start, the others are stopped',
    run: async ({ loops, address, said }) => {
      const unit = ({ bus, instance }: UnitContext) => {
        if (instance === 2) throw new Error('it-failed');
        return () => void bus.send(address, instance);
      };
      await assert.rejects(loops.deploy(unit, { instances: 3 }), { code: 'UNIT_START_FAILED' });
      assert.deepEqual(await said(2), [0, 1]);
    },
  },
  {
    name: 'testCloseDeploymentInProgress',
    expects: 'the end fails a deployment that is in progress',
    run: async ({ address }) => {
      await using loops = startHere();
      let isStarting = false;
      loops.bus.consumer(address, () => {
        isStarting = true;
      });
      const unit = {
        async start({ bus }: UnitContext) {
          bus.send(address, 'starts');
          await new Promise(() => {});
        },
        stop() {
          throw new Error('stop was called');
        },
      };
      const failed = assert.rejects(loops.deploy(unit), { code: 'UNIT_START_FAILED' });
      await waitFor(() => isStarting);
      await loops.close();
      await failed;
    },
  },
  collected('testVerticleNotLeakedWithSharedServers', true),
  collected('testClosingVertxDoesNotKeepRef', false),
  {
    name: 'testMessagingInStopMethod',
    expects: 'units that end at once answer each other until the stop of both has ended',
    differs: 'The consumers of an instance end before its stop is called, which may still send.',
    shownBy: ['units/ended.test.ts', 'a unit may send until its stop() has ended'],
  },
];
