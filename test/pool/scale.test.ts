import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostsToStart, hostsToStop, type Load } from '../../src/pool/scale.js';

function load(given: Partial<Load>): Load {
  return {
    minHosts: 0,
    hostsAtOnce: 0,
    maxHosts: 8,
    minSpareHosts: 0,
    maxSpareHosts: 0,
    idleHosts: 0,
    busyHosts: 0,
    startingHosts: 0,
    waitingTasks: 0,
    ...given,
  };
}

const toStart: [what: string, given: Partial<Load>, hosts: number][] = [
  ['nothing waits', {}, 0],
  ['one host for each waiting task', { waitingTasks: 3 }, 3],
  ['hosts on their way count', { waitingTasks: 3, startingHosts: 2 }, 1],
  ['idle hosts count', { waitingTasks: 2, idleHosts: 2 }, 0],
  ['hosts at work do not', { waitingTasks: 2, busyHosts: 3 }, 2],
  ['never above the maximum', { waitingTasks: 100, busyHosts: 6 }, 2],
  ['none when all are there', { waitingTasks: 100, busyHosts: 8 }, 0],
  ['spare hosts beside one at work', { minSpareHosts: 2, busyHosts: 1 }, 2],
  ['those that are always there', { hostsAtOnce: 3, busyHosts: 1 }, 2],
  ['no spare hosts for a pool at rest', { minSpareHosts: 2 }, 0],
];
for (const [what, given, hosts] of toStart) {
  test(`hosts to start: ${what}`, () => assert.equal(hostsToStart(load(given)), hosts));
}

const toStop: [what: string, given: Partial<Load>, hosts: number][] = [
  ['all idle ones when none must stay', { idleHosts: 3 }, 3],
  ['never below the minimum', { idleHosts: 3, minHosts: 2 }, 1],
  ['hosts at work count for the minimum', { idleHosts: 3, busyHosts: 2, minHosts: 2 }, 3],
  ['spare hosts stay', { idleHosts: 3, maxSpareHosts: 2 }, 1],
  ['the minimum of spare hosts stays too', { idleHosts: 3, minSpareHosts: 3 }, 0],
  ['hosts at work do not go', { busyHosts: 3 }, 0],
];
for (const [what, given, hosts] of toStop) {
  test(`hosts to stop: ${what}`, () => assert.equal(hostsToStop(load(given)), hosts));
}
