// A map of about 0.8 s on two cores: how near does it come to two processes that need no pool, and what does the
// first one cost, from the start of the workers on? `bare` forks two processes; each gets every second item in
// one message, and answers with all its results in one.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Pool, pmap } from 'manycore';
import { millis, runsOf } from '../lib/figures.js';
import { expectSame } from '../lib/measure.js';
import { fib } from '../lib/tasks.js';
import { random } from '../scaling/random.js';

const half = fileURLToPath(new URL('../lib/map-half.js', import.meta.url));
const itemCount = 6400;
const side = (setting, contender) => ({ setting, contender });

export default {
  figures: { mapMs: millis('the fastest map of some') },
  settings: {
    warm: { says: `${itemCount} × fib(20…23) on 2 workers that have mapped before`, cores: 2 },
    cold: {
      says: 'the same as the first work of the program, with the start of the workers',
      cores: 2,
    },
  },
  rounds: 9,
  isTogether: true,
  deadlineMs: 60_000,
  runs: [...runsOf('warm', ['manycore', 'bare']), ...runsOf('cold', ['manycore', 'bare'])],
  bars: ['warm', 'cold'].map((setting) => ({
    says: `a map of 0.8 s, ${setting}, against two bare processes`,
    figure: 'mapMs',
    of: side(setting, 'bare'),
    against: [side(setting, 'manycore')],
    atLeast: 0.97,
  })),
  async measure({ setting, scale }) {
    const below = random(1);
    const items = Array.from({ length: Math.round(itemCount * scale) }, () => 20 + below(4));
    const check = (results) => {
      expectSame(results.length, items.length);
      expectSame(results.at(-1), fib(items.at(-1)));
    };
    const least = { manycore: Number.POSITIVE_INFINITY, bare: Number.POSITIVE_INFINITY };
    const time = async (contender, map) => {
      const startMs = performance.now();
      const results = await map();
      least[contender] = Math.min(least[contender], performance.now() - startMs);
      check(results);
    };
    const mapWith = (pool) => pmap(items, fib, { pool });
    if (setting === 'cold') {
      let pool;
      let bare;
      for (let turn = 0; turn < 4 * scale; turn++) {
        await time('manycore', async () => {
          pool = new Pool({ size: 2 });
          return mapWith(pool);
        });
        await pool.destroy();
        await time('bare', () => {
          bare = openBare();
          return bare.map(items);
        });
        await bare.close();
      }
    } else {
      const pool = new Pool({ size: 2 });
      const bare = openBare();
      for (let turn = 0; turn < 3; turn++) {
        await mapWith(pool);
        await bare.map(items);
      }
      for (let turn = 0; turn < 6 * scale; turn++) {
        await time('manycore', () => mapWith(pool));
        await time('bare', () => bare.map(items));
      }
    }
    return { manycore: { mapMs: least.manycore }, bare: { mapMs: least.bare } };
  },
};

/** Two processes; `map(items)` promises all results in order. */
function openBare() {
  const children = [0, 1].map(() => fork(half, [], { serialization: 'advanced' }));
  return {
    async map(items) {
      const halves = await Promise.all(
        children.map(async (child, index) => {
          child.send(items.filter((_, at) => at % 2 === index));
          const [results] = await once(child, 'message');
          return results;
        }),
      );
      return items.map((_, at) => halves[at % 2][at >> 1]);
    },
    async close() {
      const ends = children.map((child) => once(child, 'exit'));
      for (const child of children) child.kill();
      await Promise.all(ends);
    },
  };
}
