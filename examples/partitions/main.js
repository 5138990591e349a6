// Divides Fibonacci numbers over 1, 2, … workers of each kind: threads, processes, sandboxes and guests.
// Prints how long each took, and draws the picture of it.
//   npm run example partitions [-- LARGEST [FILE]]    fib(1) … fib(LARGEST), by default 34; FILE in results/

import { existsSync, mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawChart } from './chart.js';
import { numbersUpTo, timeFibonacci } from './fibonacci.js';
import { kinds, problemOf } from './kinds.js';

const cores = availableParallelism();
/** All numbers together last 2.6 times as long as the largest alone: so often, and each core has work. */
const times = Math.max(4, Math.ceil(cores / 2));
const ownFile = fileURLToPath(new URL('./results/fibonacci.svg', import.meta.url));
const given = readArguments(process.argv.slice(2));
if (given !== undefined) await compare(given);

/** Returns `undefined` for arguments that make no sense; it has said why. */
function readArguments([text = '34', path = ownFile, ...others]) {
  const largest = Number(text);
  const file = resolve(path);
  if (path === ownFile) mkdirSync(dirname(ownFile), { recursive: true });
  const isNumber = Number.isInteger(largest) && largest >= 1 && largest <= 45;
  if (others.length === 0 && isNumber && existsSync(dirname(file))) return { largest, file };
  const wanted = 'LARGEST, from 1 to 45, and a FILE in a folder that exists';
  console.error(`partitions: ${[text, path, ...others].join(' ')}: give ${wanted}`);
  process.exitCode = 2;
  return undefined;
}

async function compare({ largest, file }) {
  const numbers = numbersUpTo(largest, times);
  const rows = [];
  const processMs = await timeFibonacci('process', 1, numbers);
  const about = `${times} times fib(1) … fib(${largest})`;
  console.log(about);
  console.log(columns('', 'workers', 'ms', 'times one process'));
  for (const [kind, { says, worker }] of Object.entries(kinds)) {
    const problem = await problemOf(kind);
    if (problem !== undefined) {
      console.log(`no ${says}: ${problem}`);
      continue;
    }
    for (const workers of workerCounts()) {
      const isKnown = kind === 'process' && workers === 1;
      const tookMs = isKnown ? processMs : await timeFibonacci(worker, workers, numbers);
      const row = { kind, says, workers, times: processMs / tookMs };
      rows.push(row);
      console.log(columns(says, workers, tookMs.toFixed(0), row.times.toFixed(2)));
    }
  }
  await writeFile(
    file,
    drawChart(rows, `${about}, times as fast as one process; Node ${process.version}`),
  );
  console.log(`the picture: ${file}`);
}

function columns(what, ...others) {
  const [workers, ms, times] = others.map(String);
  return `${what.padEnd(26)} ${workers.padStart(8)} ${ms.padStart(8)}   ${times}`;
}

/** 1, 2, 4, … and the number of cores. */
function workerCounts() {
  const doubled = Array.from({ length: 10 }, (_, power) => 2 ** power);
  return [...doubled.filter((count) => count < cores), cores];
}
