import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { nativeBinding } from '../../src/native.js';
import { allowedCores, coresToPin } from '../../src/worker/both/cores.js';
import { library, runProgram } from '../faults/child.js';

const needsNative = { skip: nativeBinding() === undefined && 'there is no native binary here' };

test('workers are pinned to the allowed cores in turn', () => {
  const allowed = [2, 3, 7];
  const taken: number[] = [];
  for (let worker = 0; worker < 5; worker += 1) taken.push(...coresToPin(taken, allowed));
  assert.deepEqual(taken, [2, 3, 7, 2, 3]);
});

test('a worker that replaces another gets the core that became free', () => {
  assert.deepEqual(coresToPin([2, 7], [2, 3, 7]), [3]);
  assert.deepEqual(coresToPin([2, 3, 7, 2, 3], [2, 3, 7]), [7]);
});

test('with unknown allowed cores, no worker is pinned', () => {
  assert.deepEqual(coresToPin([], []), []);
});

test('the allowed cores are those that the kernel lists', needsNative, () => {
  const list = listedCores(readFileSync('/proc/thread-self/status', 'utf8'));
  assert.deepEqual(allowedCores(), list);
});

test("affinity 'spread' gives each of two workers a core of its own", needsNative, async (t) => {
  if (allowedCores().length < 2) {
    t.skip('one core is allowed here');
    return;
  }
  const pinned = await coresOfWorkers(t);
  assert.deepEqual(
    pinned,
    allowedCores()
      .slice(0, 2)
      .map((core) => [core]),
  );
});

test("affinity 'spread' keeps to the cores that the program was given", needsNative, async (t) => {
  const last = allowedCores().at(-1);
  const pinned = await coresOfWorkers(
    t,
    `command -v taskset >&2 || exit 77; taskset -c ${last} "$@"`,
  );
  if (pinned !== undefined) assert.deepEqual(pinned, [[last], [last]]);
});

/**
 * Returns the allowed cores of the two workers of a program, lowest first; skips the test without
 * `taskset`.
 */
async function coresOfWorkers(t: TestContext, shell?: string): Promise<number[][] | undefined> {
  const text = `
    import { readFileSync } from 'node:fs';
    import { Pool } from ${JSON.stringify(library)};
    const pool = new Pool({ size: 2, affinity: 'spread' });
    await pool.warm();
    if (await pool.run((a, b) => a + b, 1, 2) !== 3) throw new Error('the call failed');
    const files = pool.stats().workers.map(({ pid }) => readFileSync('/proc/' + pid + '/status', 'utf8'));
    console.log(JSON.stringify(files));
    await pool.close();`;
  const { stdout, stderr, status } = await runProgram(
    t,
    text,
    shell === undefined ? {} : { shell },
  );
  if (status === 77) {
    t.skip('there is no taskset here');
    return undefined;
  }
  assert.equal(status, 0, stderr);
  const files: string[] = JSON.parse(stdout);
  return files.map(listedCores).sort(([a = 0], [b = 0]) => a - b);
}

/** The cores in a status file of /proc: "0-2,5" is 0, 1, 2 and 5. */
function listedCores(status: string): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
