// Messages of `serve`, `run` and `worker` about processes and loops that block, fail or end, or lack descriptors.

import { subscribe } from 'node:diagnostics_channel';
import {
  type ClusterLostMessage,
  type ClusterRefusedMessage,
  messageOf,
  type ServerBlockedMessage,
  type ServerExhaustedMessage,
  type ServerLoopFailedMessage,
  type ServerLostMessage,
  type ServerRecoveredMessage,
  type ServerReloadFailedMessage,
  type UnitBlockedMessage,
  type UnitFailedMessage,
  type UnitLostMessage,
  type UnitVersionChangedMessage,
} from '../lib/index.js';

/** A shorter callback, in ms, is reported without its stack. */
const stackFromMs = 5000;

/** Starts to print them on stderr, for a server or for the loops of units. */
export function reportLosses(of: 'server' | 'units'): void {
  if (of === 'server') subscribe('manycore:server:blocked', reportBlocked);
  else subscribe('manycore:unit:blocked', reportUnitBlocked);
  subscribe('manycore:server:lost', reportLost);
  subscribe('manycore:server:loop-failed', reportLoopFailed);
  subscribe('manycore:server:reload-failed', reportReloadFailed);
  subscribe('manycore:server:exhausted', reportExhausted);
  subscribe('manycore:server:recovered', reportRecovered);
  subscribe('manycore:unit:lost', reportUnitLost);
  subscribe('manycore:unit:failed', reportUnitFailed);
  subscribe('manycore:unit:version-changed', reportVersionChanged);
  subscribe('manycore:cluster:lost', reportClusterLost);
  subscribe('manycore:cluster:back', reportClusterBack);
  subscribe('manycore:cluster:refused', reportClusterRefused);
}

function reportBlocked(message: unknown): void {
  const { pid, loop, ...details }: Partial<ServerBlockedMessage> = Object(message);
  reportBlockedCallback(`loop ${loop} of process ${pid}`, details);
}

function reportLoopFailed(message: unknown): void {
  const { pid, loop, why, stack }: Partial<ServerLoopFailedMessage> = Object(message);
  if (stack !== undefined) console.error(stack);
  console.error(`manycore: process ${pid} serves without loop ${loop}, which was to come (${why})`);
}

function reportReloadFailed(message: unknown): void {
  const { name, why, stack }: Partial<ServerReloadFailedMessage> = Object(message);
  if (stack !== undefined) console.error(stack);
  console.error(`manycore: ${name} did not reload at its time: ${why}`);
}

function reportExhausted(message: unknown): void {
  const { pid, limit }: Partial<ServerExhaustedMessage> = Object(message);
  const now = limit === undefined ? '' : `, now ${limit}`;
  console.error(
    `manycore: process ${pid} has no descriptor left (or no memory): connections wait; raise the limit (ulimit -n)${now}`,
  );
}

function reportRecovered(message: unknown): void {
  const { pid, exhaustedMs = 0 }: Partial<ServerRecoveredMessage> = Object(message);
  const time = `${(exhaustedMs / 1000).toFixed(1)} s`;
  console.error(`manycore: process ${pid} has descriptors again, after ${time} without`);
}

function reportLost(message: unknown): void {
  const { pid, loop, why, stack, delayMs }: Partial<ServerLostMessage> = Object(message);
  if (stack !== undefined) console.error(stack);
  if (loop !== undefined) {
    const when = delayMs === undefined || delayMs === 0 ? '' : ` in ${delayMs} ms`;
    const which = `loop ${loop} of process ${pid}`;
    console.error(`manycore: ${which} is lost (${why}): it is started again${when}`);
    return;
  }
  const then = delayMs === undefined ? 'no other is started' : `another starts in ${delayMs} ms`;
  const what = pid === undefined ? 'a new process failed' : `process ${pid} is lost`;
  console.error(`manycore: ${what} (${why}): ${then}`);
}

function reportUnitBlocked(message: unknown): void {
  const { pid, loop, units = [], ...details }: Partial<UnitBlockedMessage> = Object(message);
  const whose = units.length === 0 ? '' : ` with ${units.join(', ')}`;
  reportBlockedCallback(`loop ${loop}${whose}, in process ${pid},`, details);
}

/** Prints one line, and for a long callback also the stack. */
function reportBlockedCallback(which: string, details: Partial<ServerBlockedMessage>): void {
  const { blockedMs = 0, place, stack = '' } = details;
  const where = place === undefined ? '' : `, at ${place}`;
  console.error(`manycore: ${which} is in one callback for ${blockedMs} ms${where}`);
  if (blockedMs >= stackFromMs && stack !== '') console.error(stack);
}

function reportUnitLost(message: unknown): void {
  const {
    unit,
    instances = [],
    why,
    stack,
    next,
    delayMs,
  }: Partial<UnitLostMessage> = Object(message);
  if (next !== 'again') return;
  if (stack !== undefined) console.error(stack);
  const isOne = instances.length === 1;
  const which = `instance${isOne ? '' : 's'} ${instances.join(', ')} of ${unit}`;
  const [are, they] = isOne ? ['is', 'it is'] : ['are', 'they are'];
  const when = delayMs === undefined ? '' : ` in ${delayMs} ms`;
  console.error(`manycore: ${which} ${are} lost (${why}): ${they} started again${when}`);
}

function reportUnitFailed(message: unknown): void {
  const { error }: Partial<UnitFailedMessage> = Object(message);
  console.error(`manycore: ${messageOf(error)} (UNIT_FAILED)`);
}

function reportVersionChanged(message: unknown): void {
  const { unit, instance, deployed, version }: Partial<UnitVersionChangedMessage> = Object(message);
  const why = `${unit} was edited after its deployment: version ${version}, and the others have ${deployed}`;
  console.error(`manycore: instance ${instance} of ${why}; reload them (HUP, or redeploy())`);
}

function reportClusterLost(message: unknown): void {
  const { unconfirmed = 0 }: Partial<ClusterLostMessage> = Object(message);
  const what = unconfirmed === 1 ? '1 message' : `${unconfirmed} messages`;
  console.error(`manycore: the connection to the NATS server is lost, perhaps with ${what}`);
}

function reportClusterBack(): void {
  console.error('manycore: the NATS server is back');
}

function reportClusterRefused(message: unknown): void {
  const { why }: Partial<ClusterRefusedMessage> = Object(message);
  console.error(`manycore: refused in the cluster (${why})`);
}
