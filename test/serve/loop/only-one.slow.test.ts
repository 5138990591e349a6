// A program's loop as it sees it, and the work of exactly one loop: never two at a time, and another one follows.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ServedApp, ServeOptions } from '../../../src/serve/index.js';
import { onlyOne, self } from '../../../src/serve/public.js';
import { isFew, isRunning, killOne, waitFor } from '../../support/index.js';
import { bodyOf, portOf } from '../client.js';
import { folder, open } from '../served.js';

const app = fileURLToPath(new URL('../apps/only-one.js', import.meta.url));

interface Note {
  readonly what: string;
  readonly pid: number;
  readonly instance: number;
  readonly at: number;
}

interface Opened {
  readonly server: ServedApp;
  readonly notes: () => Note[];
  /** The loop that runs the function now. */
  readonly running: () => Note | undefined;
}

async function openOne(t: TestContext, options: ServeOptions, mode = ''): Promise<Opened> {
  const file = join(folder(t), 'notes');
  const server = await open(t, app, { ...options, port: 0, args: [file, mode] });
  const notes = (): Note[] => {
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  };
  const running = (): Note | undefined => {
    const last = notes().at(-1);
    return last?.what === 'begin' ? last : undefined;
  };
  await waitFor(running);
  return { server, notes, running };
}

/** Fails if a function began before the one before it had ended. */
function assertOneAtATime(notes: readonly Note[]): void {
  const steps = notes.filter(({ what }) => what !== 'abort');
  for (const [at, { what, pid, instance }] of steps.entries()) {
    assert.equal(what, at % 2 === 0 ? 'begin' : 'end', JSON.stringify(steps));
    if (what === 'end') {
      assert.deepEqual([pid, instance], [steps[at - 1]?.pid, steps[at - 1]?.instance]);
    }
  }
  for (const [at, note] of steps.entries()) assert.ok(note.at >= (steps[at - 1]?.at ?? 0));
}

interface Seen {
  readonly process: number;
  readonly loop: number;
  readonly instance: number;
  readonly name: string;
  readonly generation: number;
  readonly pid: number;
  readonly env: string;
}

/** The answers of all loops. */
async function seenBy(server: ServedApp, loops: number): Promise<Seen[]> {
  const seen = new Map<string, Seen>();
  await waitFor(async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => bodyOf(portOf(server))));
    for (const answer of answers) {
      const one: Seen = JSON.parse(answer);
      if (server.pids.includes(one.pid)) seen.set(`${one.pid}:${one.loop}`, one);
    }
    return seen.size === loops;
  });
  return [...seen.values()].sort((a, b) => a.instance - b.instance);
}

test('each loop has its numbers, and a replacement has those of what it replaces', async (t) => {
  const { server } = await openOne(t, { processes: 2, loops: 2 });
  for (const generation of [0, 1]) {
    const seen = await seenBy(server, 4);
    assert.deepEqual(
      seen.map(({ instance }) => instance),
      [0, 1, 2, 3],
    );
    for (const { env, instance } of seen) assert.equal(env, String(instance));
    const lines = server.status().filter(({ state }) => state === 'ready');
    for (const { process, loop, pid, name, generation: own } of seen) {
      assert.ok(
        lines.some((line) => line.process === process && line.loop === loop && line.pid === pid),
      );
      assert.deepEqual([name, own], ['only-one', generation]);
    }
    if (generation === 0) await server.reload();
  }
  killOne(server.pids[0], 'SIGKILL');
  await waitFor(() => server.pids.length === 2);
  const after = await seenBy(server, 4);
  assert.deepEqual(
    after.map(({ instance }) => instance),
    [0, 1, 2, 3],
  );
});

test('outside of a server there are no numbers, and the function runs', async () => {
  assert.deepEqual(
    { ...self },
    {
      process: undefined,
      loop: undefined,
      instance: undefined,
      name: undefined,
      generation: undefined,
    },
  );
  const signal = await new Promise<AbortSignal>((resolve) => onlyOne(resolve));
  assert.equal(signal.aborted, false);
});

for (const loops of [1, 2]) {
  test(`one of ${2 * loops} loops runs the function; when it is killed, another does`, async (t) => {
    const { server, notes, running } = await openOne(t, { processes: 2, loops });
    await seenBy(server, 2 * loops);
    assert.equal(notes().length, 1);
    for (let round = 0; round < 3; round += 1) {
      const { pid } = await waitFor(running);
      const count = notes().length;
      const killedAt = Number(process.hrtime.bigint());
      killOne(pid, 'SIGKILL');
      await waitFor(() => notes().length === count + 1);
      const next = notes().at(-1);
      assert.equal(next?.what, 'begin');
      assert.notEqual(next?.pid, pid);
      assert.ok((next?.at ?? 0) > killedAt && !isRunning(pid));
      await waitFor(() => server.pids.length === 2);
    }
  });
}

const reloads = isFew ? 6 : 20;
test(`${reloads} reloads never have two at a time, and each ends with one`, async (t) => {
  const { server, notes, running } = await openOne(t, { processes: 2, loops: 2 }, 'late');
  for (let round = 0; round < reloads; round += 1) {
    await server.reload();
    const now = await waitFor(() => {
      const last = running();
      return last !== undefined && server.pids.includes(last.pid) && last;
    });
    assert.ok(isRunning(now.pid));
  }
  assertOneAtATime(notes());
  assert.ok(notes().filter(({ what }) => what === 'begin').length > reloads);
  await server.close();
  assert.equal(notes().at(-1)?.what, 'end');
  assertOneAtATime(notes());
});

test('a loop whose thread has ended is followed by another', async (t) => {
  const { server, running } = await openOne(t, { processes: 1, loops: 2 });
  const { pid } = await waitFor(running);
  for (let count = 0; count < 4; count += 1) bodyOf(portOf(server), '/exit').catch(() => {});
  await waitFor(() => running() !== undefined && running()?.pid !== pid);
});

test('a blocked loop keeps the work until it returns or has ended', async (t) => {
  const options = { processes: 2, loops: 1, blockedTimeoutMs: 1000, drainTimeoutMs: 500 };
  const { notes, running } = await openOne(t, options, 'block');
  const first = await waitFor(running);
  const next = await waitFor(() => notes().find(({ pid }) => pid !== first.pid), 60_000);
  assert.equal(next.what, 'begin');
  assert.ok(!isRunning(first.pid), 'the blocked one has ended before');
});

test('a function that does not end is waited for until its loop has ended', async (t) => {
  const { server, notes } = await openOne(
    t,
    { processes: 1, loops: 1, drainTimeoutMs: 300 },
    'stay',
  );
  const [first] = notes();
  await server.reload();
  await waitFor(() => notes().length === 3);
  const [, abort, next] = notes();
  assert.deepEqual([abort?.what, abort?.pid, next?.what], ['abort', first?.pid, 'begin']);
  assert.ok(!isRunning(first?.pid ?? 0));
});

test('a loop that is killed between the abort and its end is followed by another', async (t) => {
  const { server, notes, running } = await openOne(t, { processes: 2, loops: 1 }, 'stay');
  const { pid } = await waitFor(running);
  const reloaded = server.reload();
  await waitFor(() => notes().at(-1)?.what === 'abort');
  assert.equal(notes().length, 2, 'none before it has ended');
  killOne(pid, 'SIGKILL');
  const next = await waitFor(running);
  assert.notEqual(next.pid, pid);
  await reloaded;
});

test('a process that gets SIGTERM passes the work on', async (t) => {
  const { server, notes, running } = await openOne(t, { processes: 2, loops: 2 }, 'late');
  const { pid } = await waitFor(running);
  killOne(pid, 'SIGTERM');
  await waitFor(() => running() !== undefined && running()?.pid !== pid);
  assertOneAtATime(notes());
  await waitFor(() => server.pids.length === 2);
});

test('a function that fails ends its process, and its error is not hidden', async () => {
  const url = new URL('../../../src/serve/public.js', import.meta.url).href;
  const code = `import { onlyOne } from '${url}'; onlyOne(async () => { throw new Error('on purpose'); });`;
  await assert.rejects(
    promisify(execFile)(process.execPath, ['--input-type=module', '-e', code]),
    /on purpose/,
  );
});

test('what is no function is refused', () => {
  assert.throws(() => Reflect.apply(onlyOne, undefined, ['cron']), { code: 'OPTION_INVALID' });
});
