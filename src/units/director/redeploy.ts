// Redeployment, on the director's side: each instance is replaced on its loop, or in its thread, by one of the
// edited file, one after the other. The loop starts the new one, which takes over consumers and state as in a
// move, and ends the old one (loop/loop-units.ts). All instances have the new version in the end, or all the old
// one: those that were replaced before a failure are replaced once more, by the old version, which their loops
// still have.
// Not here: restarts of instances whose loop is lost meanwhile (restarts.ts).

import type { Bus } from '../../bus/index.js';
import { CodedError, hasCode } from '../../errors.js';
import { announcements, messageOf } from '../../lib/index.js';
import { ask } from '../ask.js';
import { sourceOf } from '../options.js';
import { loopAddress, type ToUnits, type UnitSource } from '../protocol.js';
import type { Deployment } from '../types.js';
import { DirectedDeployment, type Placed } from './deployment.js';
import { startMessage } from './move.js';
import type { ProcessEnd } from './process-ends.js';

export interface RedeployParts {
  readonly bus: Bus;
  /** Returns the units that the instance has deployed until now. */
  readonly childrenOf: (placed: Placed) => ReadonlySet<DirectedDeployment>;
  /** Undeploys these units, and groups as a whole. Never rejects. */
  readonly end: (children: readonly DirectedDeployment[]) => Promise<void>;
  /** Resolves when no start of the instance after a loss is under way. Never rejects. */
  readonly settled: (placed: Placed) => Promise<void>;
  /** Resolves with the end of this loop, on which the instance was; `undefined`: it ended in order. */
  readonly endOf: (placed: Placed, loop: number) => Promise<ProcessEnd | undefined>;
  /** Called when the instance has no loop any more. */
  readonly lose: (placed: Placed) => void;
}

/**
 * Resolves when all instances have the version that the file has now; does nothing if they have it already.
 * Rejects with `UNIT_REDEPLOY_FAILED` when all go on as they were, except those that the message names, with
 * `UNIT_STOP_FAILED` when all are replaced and an old one did not stop well, and with `UNIT_INVALID`.
 */
export async function redeploy(
  deployment: DirectedDeployment,
  parts: RedeployParts,
): Promise<void> {
  const { source: before, name } = deployment;
  if (before.kind === 'value') {
    const text = `${name} was deployed as a value, and only a file can be edited`;
    throw new CodedError('UNIT_INVALID', `${text}: deploy the new value, and undeploy this one`);
  }
  const source = sourceOf(new URL(before.url));
  if (source.kind === 'value') return;
  deployment.source = source; // from now on for lost instances, too
  let stopFailure: unknown;
  for (const placed of deployment.placed) {
    await parts.settled(placed); // it may have begun with the version before
    if (placed.state !== 'running' || placed.version === source.version) continue;
    try {
      await replace(deployment, placed, before, parts);
    } catch (cause) {
      if (!hasCode(cause, 'UNIT_STOP_FAILED')) {
        deployment.source = before;
        throw redeployFailed(deployment, cause, await takeBack(deployment, source.version, parts));
      }
      stopFailure ??= cause;
    }
  }
  if (stopFailure !== undefined) throw stopFailure;
}

/**
 * Replaces instances of this version, also those that a restart has given it, by the one that the deployment has
 * again; returns the numbers of those that failed.
 */
async function takeBack(
  deployment: DirectedDeployment,
  version: string,
  parts: RedeployParts,
): Promise<readonly number[]> {
  const failed: number[] = [];
  for (const placed of deployment.placed) {
    await parts.settled(placed);
    if (placed.state !== 'running' || placed.version !== version) continue;
    await replace(deployment, placed, deployment.source, parts).catch((error: unknown) => {
      if (!hasCode(error, 'UNIT_STOP_FAILED')) failed.push(placed.instance);
    });
  }
  return failed;
}

function redeployFailed(
  { name, placed }: DirectedDeployment,
  cause: unknown,
  kept: readonly number[],
): CodedError {
  const rest = placed.every(({ state }) => state === 'running') ? 'all instances' : 'the others';
  const then =
    kept.length === 0
      ? `${rest} go on as they were`
      : `the others go on as they were, but instances ${kept.join(', ')} keep the new version`;
  const text = `${name} was not redeployed, ${then}: ${messageOf(cause)}`;
  return new CodedError('UNIT_REDEPLOY_FAILED', text, { cause });
}

/**
 * Resolves also when a signal from outside ended its process: it starts again with the new version. Rejects with
 * the reason why the instance was not replaced, or with `UNIT_STOP_FAILED` once it is. A loop that ended otherwise
 * is such a reason, since the new version may have ended it; then the deployment has `before` again.
 */
async function replace(
  deployment: DirectedDeployment,
  placed: Placed,
  before: UnitSource,
  { bus, childrenOf, end, endOf, lose }: RedeployParts,
): Promise<void> {
  const { loop, instance } = placed;
  const { id, source, options } = deployment;
  if (loop === undefined || source.kind === 'value') return;
  const old = childrenOf(placed);
  const { stopTimeoutMs } = options;
  const start = startMessage(deployment, [instance], { isIncoming: true });
  const message: ToUnits = { type: 'replace', deployment: id, instance, start, stopTimeoutMs };
  placed.state = 'moving';
  let failure: unknown;
  try {
    await ask(bus, loopAddress(loop), message, Infinity); // it has deadlines of its own
  } catch (error) {
    failure = error;
    await new Promise((resolve) => setImmediate(resolve)); // by then the loss of a loop has been reported
  }
  if (placed.loop === undefined) {
    const ended = await endOf(placed, loop);
    const isFailure = ended?.isFromOutside === false;
    if (isFailure) deployment.source = before;
    placed.state = 'lost';
    lose(placed);
    if (!isFailure) return;
    const text = `instance ${instance} starts again, because its ${ended.what} ended (${ended.why})`;
    throw new Error(text);
  }
  placed.state = 'running';
  const isReplaced = failure === undefined || hasCode(failure, 'UNIT_STOP_FAILED');
  if (isReplaced) placed.version = source.version;
  const now = [...childrenOf(placed)];
  const ended = isReplaced ? [...old] : now.filter((each) => !old.has(each));
  await end(ended);
  if (failure !== undefined) throw failure;
}

/** Redeploys all that came as files; rejects with the first failure at the end. */
export async function redeployAll(deployments: readonly Deployment[]): Promise<void> {
  const failures: unknown[] = [];
  for (const each of deployments) {
    if (each instanceof DirectedDeployment && each.source.kind === 'value') continue;
    await each.redeploy().catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}

/** Announces instances of another version than the deployment has. */
export function announceVersion(
  { id, name, source }: DirectedDeployment,
  placed: readonly Placed[],
): void {
  if (source.kind === 'value') return;
  for (const { instance, version } of placed) {
    if (version === undefined || version === source.version) continue;
    const own = { unit: name, deployment: id, instance };
    announcements.unitVersionChanged.publish({ ...own, deployed: source.version, version });
  }
}
