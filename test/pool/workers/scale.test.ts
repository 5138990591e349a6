import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Load, workersToStart, workersToStop } from '../../../src/pool/workers/scale.js';

function load(given: Partial<Load>): Load {
  return {
    minWorkers: 0,
    workersAtOnce: 0,
    maxWorkers: 8,
    minSpareWorkers: 0,
    maxSpareWorkers: 0,
    idleWorkers: 0,
    busyWorkers: 0,
    startingWorkers: 0,
    waitingTasks: 0,
    ...given,
  };
}

const toStart: [what: string, given: Partial<Load>, workers: number][] = [
  ['nothing waits', {}, 0],
  ['one worker for each waiting task', { waitingTasks: 3 }, 3],
  ['workers on their way count', { waitingTasks: 3, startingWorkers: 2 }, 1],
  ['idle workers count', { waitingTasks: 2, idleWorkers: 2 }, 0],
  ['workers at work do not', { waitingTasks: 2, busyWorkers: 3 }, 2],
  ['never above the maximum', { waitingTasks: 100, busyWorkers: 6 }, 2],
  ['none when all are there', { waitingTasks: 100, busyWorkers: 8 }, 0],
  ['spare workers beside one at work', { minSpareWorkers: 2, busyWorkers: 1 }, 2],
  ['those that are always there', { workersAtOnce: 3, busyWorkers: 1 }, 2],
  ['no spare workers for a pool at rest', { minSpareWorkers: 2 }, 0],
];
for (const [what, given, workers] of toStart) {
  test(`workers to start: ${what}`, () => assert.equal(workersToStart(load(given)), workers));
}

const toStop: [what: string, given: Partial<Load>, workers: number][] = [
  ['all idle ones when none must stay', { idleWorkers: 3 }, 3],
  ['never below the minimum', { idleWorkers: 3, minWorkers: 2 }, 1],
  ['workers at work count for the minimum', { idleWorkers: 3, busyWorkers: 2, minWorkers: 2 }, 3],
  ['spare workers stay', { idleWorkers: 3, maxSpareWorkers: 2 }, 1],
  ['the minimum of spare workers stays too', { idleWorkers: 3, minSpareWorkers: 3 }, 0],
  ['workers at work do not go', { busyWorkers: 3 }, 0],
];
for (const [what, given, workers] of toStop) {
  test(`workers to stop: ${what}`, () => assert.equal(workersToStop(load(given)), workers));
}
