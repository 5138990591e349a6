// The same by hand: a master that forks a slave for each core, cuts the input into chunks, and gives the next
// chunk to the next free slave. It puts the answers in order, and ends everything when a slave fails or dies.
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

const slave = fileURLToPath(new URL('./master-slave-slave.js', import.meta.url));
const chunkItems = 16;

export function compareAll(pairs) {
  return new Promise((resolve, reject) => {
    const results = new Array(pairs.length);
    const slaves = new Set();
    let next = 0;
    let done = 0;
    const end = (error) => {
      for (const each of slaves) each.kill();
      if (error === undefined) resolve(results);
      else reject(error);
    };
    const give = (to) => {
      if (next >= pairs.length) return;
      to.send({ start: next, chunk: pairs.slice(next, next + chunkItems) });
      next += chunkItems;
    };
    const take = (from, { start, answers, error }) => {
      if (error !== undefined) {
        end(Object.assign(new Error(error.message), { stack: error.stack }));
        return;
      }
      for (const [at, answer] of answers.entries()) results[start + at] = answer;
      done += answers.length;
      if (done === pairs.length) end();
      else give(from);
    };
    if (pairs.length === 0) end();
    const count = Math.min(availableParallelism(), Math.ceil(pairs.length / chunkItems));
    for (let started = 0; started < count; started += 1) {
      const child = fork(slave, { serialization: 'advanced' });
      slaves.add(child);
      child.on('message', (message) => take(child, message));
      child.on('error', end);
      child.on('exit', (code, signal) => {
        slaves.delete(child);
        if (done < pairs.length) end(new Error(`a slave ended early: ${signal ?? code}`));
      });
      give(child);
    }
  });
}
