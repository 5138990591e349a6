// Stats from processes that run another version of manycore, or from foreign programs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ownStats, parseStats, type SourceKind } from '../../../src/agent/index.js';
import { addSource } from '../../../src/agent/sources.js';
import { metricDefinitions } from '../../../src/observe/metrics/definitions.js';
import { processReadings } from '../../../src/observe/metrics/processes.js';
import { workerReadings } from '../../../src/observe/metrics/workers.js';
import { viewOf } from '../../../src/observe/views/view.js';
import { Pool } from '../../../src/public.js';
import { ownRuntime } from '../runtime.js';

const loop = {
  ...{
    process: 1,
    pid: process.pid,
    generation: 0,
    ageMs: 5,
    rssBytes: 9,
    lastExit: 'no',
    loop: 1,
  },
  ...{ state: 'ready', utilization: 0.5, openConnections: 1, connections: 2, requestsInFlight: 1 },
  ...{ requests: 3, bytesWritten: 4, acceptsItself: false, lagMs: 1, blockedMs: 0, turnedAway: 0 },
  ...{ takenAway: 0, takenOver: 0 },
};
const others: readonly { kind: SourceKind; stats: object }[] = [
  { kind: 'bus', stats: { sent: 1, received: 2, undelivered: 0, dropped: 0, failed: 0 } },
  { kind: 'loops', stats: { loops: [loop], deployments: [{ id: 1, name: 'unit' }] } },
  { kind: 'server', stats: { app: 'app.js', lostProcesses: 0, loops: [loop] } },
  { kind: 'servedLoop', stats: { server: process.ppid, process: 1, loop: 1 } },
];

type Path = readonly (string | number)[];

/** Paths of all values in `value`. */
function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const keys = Array.isArray(value) ? value.keys() : Object.keys(value);
  return [path, ...[...keys].flatMap((key) => pathsIn(Reflect.get(value, key), [...path, key]))];
}

/** The text of `value` with another text in place of what is at `path`. */
function changed(value: unknown, path: Path, text: string): string {
  const mark = 'what is changed';
  const copy: unknown = structuredClone(value);
  const last = path.at(-1);
  if (last === undefined) return text;
  let at: unknown = copy;
  for (const key of path.slice(0, -1)) at = Reflect.get(Object(at), key);
  Reflect.set(Object(at), last, mark);
  return JSON.stringify(copy).replace(JSON.stringify(mark), text);
}

test('stats with any one malformed value are read as far as they are correct', async (t) => {
  ownRuntime(t);
  const pool = new Pool({ size: 1, worker: 'process' });
  t.after(() => pool.close());
  await pool.run(() => 1);
  for (const { kind, stats } of others) t.after(addSource(kind, stats, () => stats));
  const real: unknown = JSON.parse(JSON.stringify(await ownStats()));
  const whole = parseStats(JSON.stringify(real));
  assert.equal(whole?.sources.length, 5);
  const some = ['null', '1e999', '"x"', '[null]', '{}', '5', '{"toString":false,"valueOf":1}'];
  const texts = fc.oneof(fc.json(), fc.constantFrom(...some));
  const wrong = fc.tuple(fc.constantFrom(...pathsIn(real)), texts);
  fc.assert(
    fc.property(wrong, ([path, text]) => {
      const stats = parseStats(changed(real, path, text));
      if (stats === undefined) return;
      const threads = [stats];
      const workers = workerReadings(threads);
      const processes = processReadings(process.pid, threads, workers);
      const watched = [{ pid: stats.pid, thread: stats.thread, isUp: true }];
      for (const { name, read, readDurations } of metricDefinitions) {
        const reading = { threads, processes, watched, workers };
        readDurations?.(reading);
        for (const { value } of read(reading)) assert.ok(Number.isFinite(value), name);
      }
      const program = { pid: stats.pid, title: '', servers: [], threads, silent: [] };
      const poll = { programs: [program], usage: new Map(), trees: new Map() };
      JSON.stringify(viewOf({ ...poll, atMs: 1 }, { ...poll, atMs: 0 }));
    }),
    { numRuns: 500 },
  );
});
