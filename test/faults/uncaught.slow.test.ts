// Uncaught errors end a worker: the caller of its task gets the error, and so does a listener of the pool.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type TestContext, test } from 'node:test';
import { WorkerExitedError } from '../../src/public.js';
import { deadlineMs, openPool, ways } from '../pool/calls/ways.js';
import { waitFor, withDeadline } from '../support/index.js';

class Refused extends Error {
  override readonly name = 'Refused';
  readonly query: string;
  constructor(query: string) {
    super(`refused: ${query}`);
    this.query = query;
  }
}

/** Ways to throw outside of any catch; never answers. */
const throwers: Record<string, (error: unknown) => Promise<never>> = {
  'a timer': (error) => {
    setTimeout(() => {
      throw error;
    }, 1);
    return new Promise(() => {});
  },
  'an immediate': (error) => {
    setImmediate(() => {
      throw error;
    });
    return new Promise(() => {});
  },
  'a microtask': (error) => {
    queueMicrotask(() => {
      throw error;
    });
    return new Promise(() => {});
  },
  'a floating promise': (error) => {
    void Promise.reject(error);
    return new Promise(() => {});
  },
  'an event': async (error) => {
    const { EventEmitter } = await import('node:events');
    const emitter = new EventEmitter();
    setImmediate(() => emitter.emit('error', error));
    return new Promise(() => {});
  },
};

function exits(t: TestContext): unknown[] {
  const heard: unknown[] = [];
  const listener = (message: unknown): void => {
    heard.push(Reflect.get(Object(message), 'error'));
  };
  subscribe('manycore:worker:exit', listener);
  t.after(() => unsubscribe('manycore:worker:exit', listener));
  return heard;
}

for (const way of ways) {
  for (const [place, thrower] of Object.entries(throwers)) {
    test(`${way.name}: WORKER_EXITED has the error thrown in ${place} as its cause`, async (t) => {
      const pool = openPool(t, { size: 1 }, way);
      const call = pool.run(thrower, new Refused('select'));
      await assert.rejects(withDeadline(call, deadlineMs, 'an answer'), (error) => {
        assert.ok(error instanceof WorkerExitedError);
        assert.equal(error.code, 'WORKER_EXITED');
        assert.equal(error.exitCode, 1);
        assert.ok(error.cause instanceof Refused);
        assert.equal(error.cause.query, 'select');
        assert.match(error.message, /that nothing caught: refused: select; catch it/);
        assert.doesNotMatch(error.message, /use retry/);
        return true;
      });
    });
  }

  for (const thrown of ['just text', undefined, { reason: 5 }]) {
    test(`${way.name}: WORKER_EXITED has ${String(thrown)}, which is no error, in its cause`, async (t) => {
      const pool = openPool(t, { size: 1 }, way);
      const call = pool.run((value: unknown): Promise<never> => {
        setImmediate(() => {
          throw value;
        });
        return new Promise(() => {});
      }, thrown);
      await assert.rejects(withDeadline(call, deadlineMs, 'an answer'), (error) => {
        assert.ok(error instanceof WorkerExitedError && error.cause instanceof Error);
        assert.deepEqual(error.cause.cause, thrown);
        return true;
      });
    });
  }

  test(`${way.name}: an error after the answer is announced with the end of its worker`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const heard = exits(t);
    await pool.run(() => {
      setTimeout(() => {
        throw new RangeError('late');
      }, 1);
    });
    const error = await waitFor(() => heard[0]);
    assert.ok(error instanceof RangeError);
    assert.equal(error.message, 'late');
  });

  test(`${way.name}: an error that a listener of the worker caught is no cause of its later end`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const call = pool.run((): Promise<never> => {
      process.on('uncaughtException', () => process.exit(5));
      setImmediate(() => {
        throw new Error('caught');
      });
      return new Promise(() => {});
    });
    await assert.rejects(withDeadline(call, deadlineMs, 'an answer'), (error) => {
      assert.ok(error instanceof WorkerExitedError);
      assert.deepEqual([error.exitCode, error.cause], [5, undefined]);
      return true;
    });
  });

  test(`${way.name}: an error that an emitter without a listener threw keeps its class`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const call = pool.run(async (error: unknown) => {
      const { EventEmitter } = await import('node:events');
      new EventEmitter().emit('error', error);
    }, new Refused('insert'));
    await assert.rejects(call, (error) => error instanceof Refused && error.query === 'insert');
  });

  test(`${way.name}: an error with a field that cannot travel still arrives`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const call = pool.run((): Promise<never> => {
      setImmediate(() => {
        throw Object.assign(new Error('with a socket'), { socket: new WeakMap() });
      });
      return new Promise(() => {});
    });
    await assert.rejects(withDeadline(call, deadlineMs, 'an answer'), {
      code: 'WORKER_EXITED',
      message: /with a socket/,
    });
  });

  for (const code of [0, 1, 134]) {
    test(`${way.name}: process.exit(${code}) does not report a full heap`, async (t) => {
      const pool = openPool(t, { size: 1 }, way);
      const call = pool.run((status: number) => process.exit(status), code);
      await assert.rejects(call, (error) => {
        assert.ok(error instanceof WorkerExitedError);
        assert.equal(error.exitCode, code);
        assert.doesNotMatch(error.message, /heap/);
        return true;
      });
    });
  }
}
