// A STAND-IN for the library's own `pmap`, with its signature and none of its care. To be deleted:
// contenders.js then imports `pmap` from 'manycore'.

const lanesPerHost = 4;
const chunkTasks = new WeakMap();

/** Promises `items.map(fn)`, computed in the hosts of `pool`, `chunk` items a task. */
export async function pmap(items, fn, { pool, chunk = 4 }) {
  const results = new Array(items.length);
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const start = next;
      next += chunk;
      const part = items.slice(start, next);
      const answers = await pool.run(chunkTask(fn), part, start);
      for (let at = 0; at < answers.length; at++) results[start + at] = answers[at];
    }
  };
  const lanes = lanesPerHost * pool.stats().hosts.length;
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

/** One function for each mapper, so that it is told to a host once. */
function chunkTask(fn) {
  let task = chunkTasks.get(fn);
  if (task === undefined) {
    task = (part, start) => part.map((item, at) => fn(item, start + at));
    chunkTasks.set(fn, task);
  }
  return task;
}
