// The limit of 1,024 threads, and memory that this version cannot use: one clear error in whoever meets it. Threads are
// numbers in the memory here, all with the state of one that lives.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireNative } from '../../src/native.js';
import { runWithWords } from './programs.js';

requireNative(); // without it there is no such memory

/** Functions of a program that takes all numbers for threads but `left`, and gives some back. */
const crowd = `
  const words = openWords();
  const stateAt = (number) => place.states + number * place.wordsOfThread;
  const fill = (left) => {
    const part = new native.NativeTransactions(1, 2 ** 26, 1000, () => {});
    const state = words[stateAt(0)]; // of this thread, which lives
    part.close();
    for (let number = 0; number < 1024 - left; number++) words[stateAt(number)] = state;
    words[place.numbers] = 1024;
  };
  const giveBack = (number) => (words[stateAt(number)] = 0);
  const crowded = {
    code: 'STM_CROWDED',
    message: '1024 threads make transactions already, and no more can: end some workers',
  };`;

test('thread 1,025 is refused with the way out, and takes a number that becomes free', async (t) => {
  await runWithWords(
    t,
    `${crowd}
    fill(0);
    assert.equal(stmStats().threads, 0); // this one takes no part
    for (const use of [() => tvar(1), () => tmap(), () => atomically(() => 1)]) assert.throws(use, crowded);
    await assert.rejects(atomicallyWhen(() => 1), crowded);
    giveBack(700);
    const variable = tvar('of the last one');
    assert.equal(variable.peek(), 'of the last one');
    assert.equal(stmStats().threads, 1024);`,
  );
});

test('the error of thread 1,025 is one line, before the stack', async (t) => {
  const lines = await runWithWords(
    t,
    `${crowd}
    fill(0);
    try { tvar(1) } catch (error) { console.log(String(error.stack)) }`,
  );
  assert.equal(
    lines[0],
    'CodedError: 1024 threads make transactions already, and no more can: end some workers',
  );
  assert.match(lines[1] ?? '', /^ +at /);
});

test('a worker without a number fails its task, and has one when another thread ends', async (t) => {
  await runWithWords(
    t,
    `${crowd}
    const pool = new Pool({ size: 1 });
    await pool.warm();
    fill(1);
    const variable = tvar(1);
    const add = () => atomically(() => variable.update((value) => value + 1));
    await assert.rejects(pool.run(add), ({ code, message }) => {
      assert.equal(code, crowded.code);
      assert.ok(message.startsWith(crowded.message + '\\n  path: '), message);
      return true;
    });
    assert.equal(variable.peek(), 1);
    giveBack(5);
    assert.equal(await pool.run(add), 2);
    assert.equal(variable.peek(), 2);
    await pool.close();`,
  );
});

test('a wait that finds no number for the thread that sleeps is refused, and the program ends', async (t) => {
  await runWithWords(
    t,
    `${crowd}
    fill(1);
    const flag = tvar(false);
    await assert.rejects(atomicallyWhen(() => check(flag.get())), crowded);
    giveBack(9);
    const waits = atomicallyWhen(() => check(flag.get()));
    atomically(() => flag.set(true));
    await waits;
    giveBack(10);
    fill(0);
    assert.equal(flag.peek(), true);`,
  );
  await runWithWords(
    t,
    `${crowd}
    fill(1);
    const flag = tvar(false);
    await assert.rejects(atomicallyWhen(() => check(flag.get())), crowded);
    // Nothing keeps the event loop: the program ends here.`,
  );
});

const versionNow =
  /^the transactional memory has version 4, this binary \d+: update both sides together$/;

test('memory of another version, or with constants that are none, is refused in each thread', async (t) => {
  const lines = await runWithWords(
    t,
    `const words = openWords();
    const uses = [() => tvar(1), () => tmap(), () => atomically(() => 1)];
    const wrong = [['version', 4], ['magic', 1234], ['sizeWords', 1000], ['threads', 3], ['threads', -1]];
    const pool = new Pool({ size: 1 });
    await pool.warm();
    for (const [name, value] of wrong) {
      const right = words[place[name]];
      words[place[name]] = value;
      const seen = new Set();
      for (const use of uses) {
        try {
          use();
        } catch ({ code, message }) {
          seen.add(code + ' ' + message);
        }
      }
      await pool.run(() => tvar(1).peek()).catch(({ code, message }) => seen.add(code + ' ' + message));
      console.log([...seen].join());
      words[place[name]] = right;
    }
    assert.equal(tvar(1).peek(), 1);
    assert.equal(await pool.run(() => tvar(2).peek()), 2);
    await pool.close();`,
  );
  const [version = '', ...others] = lines;
  assert.match(version.replace('SEGMENT_VERSION ', ''), versionNow);
  assert.deepEqual(others, [
    'SEGMENT_CORRUPT the magic number of TVars in shared memory is 1234, which cannot be right',
    'SEGMENT_CORRUPT the number of words for TVars in shared memory is 1000, which cannot be right',
    'SEGMENT_CORRUPT the number of threads for TVars in shared memory is 3, which cannot be right',
    'SEGMENT_CORRUPT the number of threads for TVars in shared memory is 4294967295, which cannot be right',
  ]);
});

const files: Readonly<Record<string, readonly [open: string, says: string]>> = {
  'of another size': [
    'descriptors.release(descriptors.createSegment(65536, 16, 1, 0))',
    'the size of the memory in shared memory is 139264, which cannot be right',
  ],
  'that can shrink': [
    "openSync('main.mjs', 'r+')",
    'the seal of the memfd in shared memory is 4294967295, which cannot be right',
  ],
  'that is none': [
    "openSync('/dev/null')",
    'the seal of the memfd in shared memory is 4294967295, which cannot be right',
  ],
};

for (const [what, [open, says]] of Object.entries(files)) {
  test(`a file ${what} is refused as memory, at each use`, async (t) => {
    const lines = await runWithWords(
      t,
      `const descriptors = new native.NativeDescriptors();
      native.adoptSpace(${open});
      for (const use of [() => tvar(1), () => atomically(() => 1), () => tmap()]) {
        assert.throws(use, (error) => {
          console.log(error.code + ' ' + error.message);
          return true;
        });
      }`,
    );
    assert.deepEqual([...new Set(lines)], [`SEGMENT_CORRUPT ${says}`]);
    assert.equal(lines.length, 3);
  });
}
