// Fixed amounts of work for the case `workers`. A task answers with its result and the CPU time that its
// worker used meanwhile; every answer is checked.
import { setTimeout as sleep } from 'node:timers/promises';
import { fib } from '../lib/tasks.js';

const fibonacciOf = 33;
const fibonacciTasks = 96;
const mixedTasks = 144;
const rowCount = 30_000;
const waitMs = 20;

/** Runs in a worker: `work(input)` and what it cost. */
async function timed(work, input) {
  const before = process.cpuUsage();
  const answer = await work(input);
  const { user, system } = process.cpuUsage(before);
  return { answer, cpuUs: user + system };
}

/** Strings and objects. */
function writeAndRead(count) {
  const rows = Array.from({ length: count }, (_, at) => ({ at, name: `row ${at}`, half: at / 2 }));
  return JSON.parse(JSON.stringify(rows)).length;
}

/** Waits as for a disk or a network. */
async function waitLong(ms) {
  await sleep(ms);
  return ms;
}

const fibonacci = { work: fib, input: fibonacciOf, answer: fib(fibonacciOf) };
const strings = { work: writeAndRead, input: rowCount, answer: rowCount };
const waiting = { work: waitLong, input: waitMs, answer: waitMs };
const mix = [fibonacci, strings, waiting];

export const loads = {
  fibonacci: {
    says: `${fibonacciTasks} times fib(${fibonacciOf})`,
    tasks: Array.from({ length: fibonacciTasks }, () => fibonacci),
  },
  mixed: {
    says: `${mixedTasks} tasks in turns: fib(${fibonacciOf}), JSON of 30,000 rows, ${waitMs} ms of waiting`,
    tasks: Array.from({ length: mixedTasks }, (_, at) => mix[at % mix.length]),
  },
};

/** Gives all tasks to the pool at once; throws for a wrong answer. */
export async function answersOf(tasks, pool) {
  const answers = await Promise.all(tasks.map(({ work, input }) => pool.run(timed, work, input)));
  for (const [at, { answer }] of answers.entries()) {
    if (answer !== tasks[at].answer) throw new Error(`task ${at} answered ${answer}`);
  }
  return { cpuMs: answers.reduce((sum, { cpuUs }) => sum + cpuUs, 0) / 1000 };
}
