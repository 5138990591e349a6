// When does each of six concurrent pbkdf2 calls end, by the size of libuv's thread pool?
// `node` is the plain asynchronous call, in a process that was started with this size: libuv reads it once,
// and the loader of modules has used the pool before a program can set it. `manycore` gives the same six to a
// pool of as many workers. Its threads are not those that read files and resolve names.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Pool } from 'manycore';
import { millis, runsOf } from '../lib/figures.js';
import { deriveThere, jobs, timesOf, turns } from '../paper/derive.js';

const sizes = [1, 2, 4, 6];
const settingOf = (size) => `${size} thread${size === 1 ? '' : 's'}`;
const alone = fileURLToPath(new URL('../paper/derive-alone.js', import.meta.url));

export default {
  figures: Object.fromEntries(
    Array.from({ length: jobs }, (_, at) => [`done${at + 1}Ms`, millis(`done ${at + 1}`)]),
  ),
  settings: Object.fromEntries(
    sizes.map((size) => [
      settingOf(size),
      { size, says: `${jobs} times pbkdf2 of ${turns} turns, begun together` },
    ]),
  ),
  runs: sizes.flatMap((size) => runsOf(settingOf(size), ['node', 'manycore'])),
  bars: [],
  async measure({ contender, setting }) {
    const size = Number.parseInt(setting, 10);
    const doneMs = contender === 'node' ? await inThreadPool(size) : await inWorkers(size);
    return Object.fromEntries(doneMs.map((ms, at) => [`done${at + 1}Ms`, ms]));
  },
};

async function inThreadPool(size) {
  const env = { ...process.env, UV_THREADPOOL_SIZE: String(size) };
  const { stdout } = await promisify(execFile)(process.execPath, [alone], { env });
  return JSON.parse(stdout);
}

async function inWorkers(size) {
  const pool = new Pool({ size });
  await pool.warm();
  return await timesOf(() => pool.run(deriveThere, turns));
}
