// Vert.x's cases of deployments that start, or do not (DeploymentTest).

import assert from 'node:assert/strict';
import type { UnitContext } from '../../../src/public.js';
import { appUrl } from '../loops.js';
import { speaking, type UnitCase } from './case.js';

const config = { text: 'a', list: [1, { b: null }] };

const noOptionsObject = (name: string): UnitCase => ({
  name,
  expects: 'an object of options has setters, copies and JSON',
  absent: 'Options are plain objects.',
});

const plain = (name: string): UnitCase => ({
  name,
  expects: 'a unit starts on an event loop',
  run: async ({ loops, address, said }) => {
    const deployment = await loops.deploy(speaking(address));
    assert.deepEqual(await said(1), ['start']);
    assert.deepEqual(
      (await deployment.status()).map(({ state }) => state),
      ['running'],
    );
    await deployment.undeploy();
  },
});

const configured = (name: string, on: 'loop' | 'blocking'): UnitCase => ({
  name,
  expects: 'a unit gets its configuration',
  run: async ({ loops, address, said }) => {
    const unit = ({ bus, config }: UnitContext) => void bus.send(address, config);
    await using _ = await loops.deploy(unit, { config, on });
    assert.deepEqual(await said(1), [config]);
  },
});

/** Start and stop run in one thread: that of a loop, or one beside it, with globals of its own. */
const oneThread = (name: string, on: 'loop' | 'blocking'): UnitCase => ({
  name,
  expects: `start and stop run in the thread of a ${on === 'loop' ? 'loop' : 'blocking unit'}`,
  run: async ({ loops, address, said }) => {
    const isMarked = (): boolean => Reflect.has(globalThis, address);
    const unit = ({ bus }: UnitContext) => {
      Reflect.set(globalThis, address, true);
      return () => void bus.send(address, `stop ${isMarked()}`);
    };
    const deployment = await loops.deploy(unit, { on });
    const ofLoop = ({ bus }: UnitContext) => void bus.send(address, `loop ${isMarked()}`);
    const others = await loops.deploy(ofLoop, { instances: 2 });
    await deployment.undeploy();
    await others.undeploy();
    assert.deepEqual(await said(3), ['loop false', `loop ${on === 'loop'}`, 'stop true']);
  },
});

const failing = (name: string, how: 'throws' | 'rejects' | 'throws no error'): UnitCase => ({
  name,
  expects: 'the deployment fails with what start threw, and nothing is deployed',
  differs:
    'It rejects with `UNIT_START_FAILED`, which has the text and, as cause, what start threw.',
  run: async ({ loops }) => {
    const unit = async (): Promise<void> => {
      if (how === 'rejects') await Promise.resolve();
      throw how === 'throws no error' ? 'FooBar!' : new Error('FooBar!');
    };
    const before = loops.deployments.length;
    await assert.rejects(loops.deploy(unit), {
      code: 'UNIT_START_FAILED',
      message: /FooBar!$/,
      cause: how === 'throws no error' ? 'FooBar!' : new Error('FooBar!'),
    });
    assert.equal(loops.deployments.length, before);
  },
});

/** The same, deployed by another unit. */
const failingChild = (name: string): UnitCase => ({
  ...failing(name, 'throws'),
  run: async ({ loops, address, said }) => {
    const parent = async ({ bus, deploy }: UnitContext) => {
      const child = (): never => {
        throw new Error('FooBar!');
      };
      await deploy(child).catch((error: unknown) =>
        bus.send(address, Reflect.get(Object(error), 'code')),
      );
    };
    const deployment = await loops.deploy(parent);
    assert.deepEqual(await said(1), ['UNIT_START_FAILED']);
    assert.equal(loops.deployments.length, 1);
    await deployment.undeploy();
  },
});

const noModule = (name: string, path: string): UnitCase => ({
  name,
  expects: 'a class that is not there is refused',
  run: async ({ loops }) => {
    await assert.rejects(loops.deploy(path), { code: 'UNIT_INVALID', message: /there is no unit/ });
  },
});

const byModule = (name: string, given?: object): UnitCase => ({
  name,
  expects: 'a unit is deployed by its name',
  run: async ({ loops }) => {
    const greeting = { config: { greeting: 'hello' }, ...given };
    await using deployment = await loops.deploy(appUrl('module'), greeting);
    assert.equal(deployment.name, 'module');
    const { body } = await loops.bus.request<{ text: string }>('greet', 'you');
    assert.equal(body.text, 'hello you');
  },
});

export const startCases: readonly UnitCase[] = [
  ...[
    'testOptions',
    'testCopyOptions',
    'testDefaultJsonOptions',
    'testJsonOptions',
    'testToJson',
  ].map(noOptionsObject),
  plain('testDeployFromTestThread'),
  plain('testDeployFromTestThreadNoHandler'),
  configured('testDeployWithConfig', 'loop'),
  {
    name: 'testDeployFromContext',
    expects: 'a unit deploys another one',
    run: async ({ loops, address, said }) => {
      const child = speaking(address);
      const parent = async ({ deploy }: UnitContext) => void (await deploy(child));
      await using _ = await loops.deploy(parent);
      assert.deepEqual(await said(1), ['start']);
      assert.equal(loops.deployments.length, 2);
    },
  },
  oneThread('testDeployWorkerFromTestThread', 'blocking'),
  configured('testDeployWorkerWithConfig', 'blocking'),
  oneThread('testWorkerRightThread', 'blocking'),
  oneThread('testStandardRightThread', 'loop'),
  oneThread('testInVerticle', 'loop'),
  oneThread('testInWorkerVerticle', 'blocking'),
  failingChild('testDeployFromContextExceptionInStart'),
  failingChild('testDeployFromContextErrorInStart'),
  failing('testDeployExceptionInStart', 'throws'),
  failing('testDeployErrorInStart', 'throws no error'),
  failing('testAsyncDeployFailureCalledSynchronously', 'throws'),
  failing('testAsyncDeployFailure', 'rejects'),
  {
    name: 'testDeployInstanceSetInstances',
    expects: 'several instances of one object are refused',
    differs: 'Each instance is a copy of the object.',
    run: async ({ loops, address, said }) => {
      const unit = {
        starts: 0,
        start({ bus }: UnitContext) {
          this.starts += 1;
          bus.send(address, this.starts);
        },
      };
      await using _ = await loops.deploy(unit, { instances: 2 });
      assert.deepEqual(await said(2), [1, 1]);
    },
  },
  byModule('testDeployUsingClassName'),
  byModule('testDeployUsingClassAndConfig', { instances: 2 }),
  noModule('testDeployUsingClassFails', './uhqwuhiqwduhwd.js'),
  noModule('testDeployClassNotFound1', 'iqwjdiqwjdoiqwjdqwij'),
  noModule('testDeployClassNotFound2', 'foo.bar.wibble.CiejdClass'),
  {
    name: 'testDeployAsSource',
    expects: 'a source file is compiled and deployed',
    differs: 'A unit is JavaScript, or TypeScript that this Node runs itself; nothing is compiled.',
  },
  {
    name: 'testAsyncDeployCalledSynchronously',
    expects: 'a start that completes at once is a start',
    run: async ({ loops }) => {
      await using deployment = await loops.deploy(() => Promise.resolve());
      assert.equal((await deployment.status()).length, 1);
    },
  },
  {
    name: 'testAsyncDeploy',
    expects: 'a deployment is ready when the promise of start resolves',
    run: async ({ loops, address, words, said }) => {
      const unit = async ({ bus }: UnitContext) => {
        await bus.request(`${address} wait`, 0);
        bus.send(address, 'ready');
      };
      let isReady = false;
      using _ = loops.bus.consumer(`${address} wait`, (message) => {
        assert.deepEqual([words, isReady], [[], false]);
        message.reply(0);
      });
      await using _deployment = await loops.deploy(unit);
      isReady = true;
      assert.deepEqual(await said(1), ['ready']);
    },
  },
  {
    name: 'testGetInstanceCount',
    expects: 'a unit can read that it has one instance',
    differs:
      'A unit has its own number, `instance`; how many there are is in `status()`, and changes.',
    run: async ({ loops, address, said }) => {
      const unit = ({ bus, instance }: UnitContext) => void bus.send(address, instance);
      await using deployment = await loops.deploy(unit);
      assert.deepEqual(await said(1), [0]);
      assert.equal((await deployment.status()).length, 1);
    },
  },
  {
    name: 'testGetInstanceCountMultipleVerticles',
    expects: 'a unit can read that it has three instances',
    differs:
      'A unit has its own number, `instance`; how many there are is in `status()`, and changes.',
    run: async ({ loops, address, said }) => {
      const unit = ({ bus, instance }: UnitContext) => void bus.send(address, instance);
      await using deployment = await loops.deploy(unit, { instances: 3 });
      assert.deepEqual(await said(3), [0, 1, 2]);
      assert.equal((await deployment.status()).length, 3);
    },
  },
  {
    name: 'testDeploySupplier',
    expects: 'a function makes each of four instances, with its configuration',
    run: async ({ loops, address, said }) => {
      const unit = ({ bus, config, instance }: UnitContext) =>
        void bus.send(address, `${instance} ${JSON.stringify(config)}`);
      await using _ = await loops.deploy(unit, { instances: 4, config });
      const text = JSON.stringify(config);
      assert.deepEqual(
        await said(4),
        [0, 1, 2, 3].map((each) => `${each} ${text}`),
      );
    },
  },
  {
    name: 'testDeploySupplierNull',
    expects: 'a function that makes no unit is refused',
    differs: 'A function is the start of the unit, so it may return nothing.',
    run: async ({ loops }) => {
      const deployment = await loops.deploy(() => null);
      await deployment.undeploy();
    },
  },
  {
    name: 'testDeploySupplierDuplicate',
    expects: 'a function that makes the same unit twice is refused',
    absent: 'Instances are in several processes and share no object.',
  },
  failing('testDeploySupplierThrowsException', 'throws'),
  {
    name: 'testDeployClass',
    expects: 'a class makes each of four instances',
    run: async ({ loops, address, said }) => {
      class Unit {
        #starts = 0;
        start({ bus, instance }: UnitContext): void {
          this.#starts += 1;
          bus.send(address, `${instance} ${this.#starts}`);
        }
      }
      await using _ = await loops.deploy(Unit, { instances: 4 });
      assert.deepEqual(await said(4), ['0 1', '1 1', '2 1', '3 1']);
    },
  },
  {
    name: 'testDeployClassNoDefaultPublicConstructor',
    expects: 'a class that cannot be constructed is refused',
    run: async ({ loops }) => {
      class Unit {
        constructor() {
          throw new Error('not public');
        }
        start(): void {}
      }
      await assert.rejects(loops.deploy(Unit), {
        code: 'UNIT_START_FAILED',
        message: /not public$/,
      });
    },
  },
  {
    name: 'testWorkerInstancesUseSameEventLoopThread',
    expects: 'blocking instances of a deployment share one event loop',
    differs: 'Each blocking instance has a thread with an event loop of its own.',
    run: async ({ loops, address, said }) => {
      const unit = ({ bus }: UnitContext) => {
        bus.send(address, Reflect.has(globalThis, address));
        Reflect.set(globalThis, address, true);
      };
      await using _ = await loops.deploy(unit, { instances: 3, on: 'blocking' });
      assert.deepEqual(await said(3), [false, false, false]);
    },
  },
  {
    name: 'testContextClassLoader',
    expects: 'a unit loads its classes by a class loader of its own',
    absent: 'JavaScript has no class loaders.',
  },
  {
    name: 'testVirtualThreadsNotAvailable',
    expects: 'an unsupported threading model is refused',
    run: async ({ loops }) => {
      const on: 'loop' = Object('virtual');
      await assert.rejects(
        loops.deploy(() => {}, { on }),
        { code: 'OPTION_INVALID' },
      );
    },
  },
];
