// Adds one to each of 1 … 100 and prints the sum, with `child_process.fork` by hand. The next number goes to
// the next free process, results keep their places, and a process that fails is noticed.
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

if (process.send === undefined) {
  const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
  const added = await mapInProcesses(numbers, availableParallelism());
  console.log(added.reduce((sum, number) => sum + number));
} else {
  process.on('message', ({ index, number }) => {
    process.send({ index, result: number + 1 });
  });
}

function mapInProcesses(items, processCount) {
  return new Promise((resolve, reject) => {
    const results = new Array(items.length);
    const children = [];
    let next = 0;
    let done = 0;
    let isOver = false;
    const end = (settle) => {
      isOver = true;
      for (const child of children) child.disconnect();
      settle();
    };
    const sendNext = (child) => {
      if (next === items.length) return;
      child.send({ index: next, number: items[next] });
      next += 1;
    };
    for (let count = 0; count < processCount; count += 1) {
      const child = fork(fileURLToPath(import.meta.url));
      children.push(child);
      child.on('error', (error) => end(() => reject(error)));
      child.on('exit', (code) => {
        if (!isOver) end(() => reject(new Error(`a process ended with ${code}`)));
      });
      child.on('message', ({ index, result }) => {
        results[index] = result;
        done += 1;
        if (done === items.length) end(() => resolve(results));
        else sendNext(child);
      });
      sendNext(child);
    }
  });
}
