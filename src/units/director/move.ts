// Moving an instance to another loop, on the director's side. It is started there, unannounced, while the old
// one goes on. The old loop then holds its messages, saves and sends its state, and forwards all that comes
// to the new one; at last the old one is stopped. The old loop alone decides whether it moves, in one step,
// so that there is always exactly one. When that loop is lost in the middle, the new instance is kept if it
// has its state.
// Not here: forwarding of messages (bus/hand-over/hand-offs.ts).

import type { Bus } from '../../bus/index.js';
import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import { ask } from '../ask.js';
import { stopFailed } from '../errors.js';
import { loopAddress, parseVersion, type ToUnits } from '../protocol.js';
import type { DirectedDeployment, Placed } from './deployment.js';

export interface MoveParts {
  readonly target: { readonly loop: number; readonly pid: number };
  readonly bus: Bus;
  readonly isThere: (loop: number) => boolean;
  /** Ends the children that the instance deployed on this loop. */
  readonly endChildren: (loop: number) => Promise<void>;
  /** Called when the instance has no loop any more. */
  readonly lose: () => void;
}

/** `isStrict`: fails when the file has another version by now. */
export function startMessage(
  { id, name, source, config, options }: DirectedDeployment,
  instances: readonly number[],
  { isIncoming = false, isStrict = true } = {},
): Extract<ToUnits, { type: 'start' }> {
  const { on, blockingThreads, startTimeoutMs } = options;
  const what = { deployment: id, name, source, config, instances, on, isIncoming, isStrict };
  return { type: 'start', ...what, blockingThreads, startTimeoutMs };
}

/** Rejects with `UNIT_MOVE_FAILED`, or with `UNIT_STOP_FAILED` once it has moved. */
export async function moveInstance(
  deployment: DirectedDeployment,
  placed: Placed,
  parts: MoveParts,
): Promise<void> {
  const { loop: from, instance } = placed;
  const what = `instance ${instance} of ${deployment.name}`;
  if (from === undefined || placed.state !== 'running') {
    const text = `${what} is ${placed.state}: move it when it runs again`;
    throw new CodedError('UNIT_MOVE_FAILED', text);
  }
  const { target } = parts;
  const end = (loop: number): Promise<void> => endOn(loop, deployment, placed, parts);
  placed.state = 'moving';
  try {
    await goTo(deployment, placed, from, parts);
  } catch (cause) {
    await end(target.loop).catch(() => {}); // the first error counts
    const isLost = placed.loop === undefined;
    placed.state = isLost ? 'lost' : 'running';
    if (isLost) parts.lose();
    const home = deployment.options.on === 'blocking' ? 'thread' : 'loop';
    const then = isLost
      ? `its ${home} has ended, and it is started again`
      : 'it goes on where it was';
    const text = `${what} could not go to loop ${target.loop}, ${then}: ${messageOf(cause)}`;
    throw new CodedError('UNIT_MOVE_FAILED', text, { cause });
  }
  Object.assign(placed, { loop: target.loop, pid: target.pid, state: 'running' });
  if (!parts.isThere(target.loop)) {
    Object.assign(placed, { loop: undefined, pid: undefined, state: 'lost' });
    parts.lose();
  }
  await end(from);
}

/** Rejects when the instance has not moved. */
async function goTo(
  deployment: DirectedDeployment,
  placed: Placed,
  from: number,
  { bus, target }: MoveParts,
): Promise<void> {
  const { startTimeoutMs, stopTimeoutMs } = deployment.options;
  const { instance } = placed;
  const address = loopAddress(target.loop);
  const start = startMessage(deployment, [instance], { isIncoming: true });
  placed.version = parseVersion(await ask(bus, address, start, 2 * startTimeoutMs));
  const own = { deployment: deployment.id, instance };
  const timeouts = { saveTimeoutMs: stopTimeoutMs, restoreTimeoutMs: startTimeoutMs };
  const handOff: ToUnits = { type: 'handOff', ...own, to: target.loop, ...timeouts };
  try {
    await ask(bus, loopAddress(from), handOff, Infinity); // it has deadlines of its own, and it decides
  } catch (error) {
    await new Promise((resolve) => setImmediate(resolve)); // by then the loss of a loop has been reported
    const isSourceLost = placed.loop === undefined;
    const question: ToUnits = { type: 'askRestored', ...own };
    const hasCome = isSourceLost && (await ask(bus, address, question, startTimeoutMs));
    if (hasCome !== true) throw error;
  }
}

/** Stops the instance on this loop, with its children; rejects with `UNIT_STOP_FAILED`. */
async function endOn(
  loop: number,
  { id, name, options }: DirectedDeployment,
  { instance }: Placed,
  { bus, isThere, endChildren }: MoveParts,
): Promise<void> {
  await endChildren(loop);
  const { stopTimeoutMs } = options;
  const message: ToUnits = { type: 'stop', deployment: id, instances: [instance], stopTimeoutMs };
  try {
    if (isThere(loop)) await ask(bus, loopAddress(loop), message, stopTimeoutMs);
  } catch (error) {
    if (isThere(loop)) throw stopFailed(name, error); // else it ended with the loop
  }
}
