// Messages between the loops and their director, over the bus, under addresses of manycore's own, and their
// parsers.

import { type HandOffTarget, type InstanceEnd, reservedPrefix } from '../bus/index.js';
import { CodedError } from '../errors.js';
import type { ServerBlockedMessage } from '../lib/index.js';
import type {
  DeployAllOptions,
  DeployOptions,
  GroupMember,
  InstanceHealth,
  InstanceStatus,
  UnitPlacement,
} from './types.js';

/** The director's address; it lives in the process that started the loops. */
export const directorAddress = `${reservedPrefix}director`;

/** Published when the program has left its cluster: its loops and their threads leave, too. */
export const farewellAddress = `${reservedPrefix}farewell`;

/** Published with a `BlockedNote` when a loop is blocked, and when it is back. */
export const blockedAddress = `${reservedPrefix}blocked`;

export interface BlockedNote {
  readonly loop: number;
  /** Counted up with each announcement of a blocked loop. */
  readonly turn: number;
  readonly isBack: boolean;
  /** Time after which the announcement no longer counts, in ms. */
  readonly forMs: number;
}

export function loopAddress(loop: number): string {
  return `${reservedPrefix}loop:${loop}`;
}

/** The query of the URL of a module that was loaded anew, before its version. */
export const versionMark = 'manycore-version';

/** Source of an instance's code: a module, or the unit itself. */
export type UnitSource =
  | { readonly kind: 'module'; readonly url: string; readonly version: string }
  | { readonly kind: 'value'; readonly value: unknown };

/** Identifies an instance among all loops. */
export interface InstanceId {
  readonly deployment: number;
  readonly instance: number;
  /** The number of its loop: one that moves is in two for a moment. */
  readonly loop: number;
}

/** Messages to a loop. */
export type ToUnits =
  /** Answered by the version of their code when all of these run; with an error none does. */
  | {
      readonly type: 'start';
      readonly deployment: number;
      readonly name: string;
      readonly source: UnitSource;
      readonly config: unknown;
      readonly instances: readonly number[];
      readonly on: UnitPlacement;
      readonly blockingThreads: number;
      readonly startTimeoutMs: number;
      /** True: it comes from another loop, and its consumers are not announced yet. */
      readonly isIncoming: boolean;
      /** True: the code must have the version of `source`. */
      readonly isStrict: boolean;
    }
  /**
   * Starts an instance beside the one of this number, which then hands off to it. Answered when the old one has
   * ended; with an error the old one goes on, except with `UNIT_STOP_FAILED`.
   */
  | {
      readonly type: 'replace';
      readonly deployment: number;
      readonly instance: number;
      readonly start: Extract<ToUnits, { type: 'start' }>;
      readonly stopTimeoutMs: number;
    }
  /** Hands off the instance to another loop, where it has started; answered when it has left. */
  | {
      readonly type: 'handOff';
      readonly deployment: number;
      readonly instance: number;
      readonly to: number;
      readonly saveTimeoutMs: number;
      readonly restoreTimeoutMs: number;
    }
  /** From the loop that hands off the instance, whose bus is `from`. Answered by a `HandOffTarget`. */
  | {
      readonly type: 'restore';
      readonly deployment: number;
      readonly instance: number;
      readonly state: unknown;
      readonly from: string;
      readonly timeoutMs: number;
    }
  /** Answered, once that is decided, by true if the instance has its state. */
  | { readonly type: 'askRestored'; readonly deployment: number; readonly instance: number }
  /** Answered when these are gone; with an error they are, too. */
  | {
      readonly type: 'stop';
      readonly deployment: number;
      readonly instances: readonly number[];
      readonly stopTimeoutMs: number;
    }
  /** Answered by a list of `InstanceHealth`. */
  | { readonly type: 'health'; readonly deployment: number; readonly timeoutMs: number }
  /** From a thread to its loop: it has started, with this number in the mesh. */
  | { readonly type: 'threadHere'; readonly thread: number; readonly member: number }
  /** To a thread, whose instance of this deployment has ended. */
  | { readonly type: 'exit'; readonly deployment: number };

/** Messages to the director. */
export type ToDirector =
  /** From a loop that joins the program's cluster; answered by a `ClusterTicket`, or null. */
  | { readonly type: 'cluster' }
  /** From a loop that has started; answered when it has the instances of the one that it replaces. */
  | {
      readonly type: 'arrived';
      readonly loop: number;
      readonly pid: number;
      /** The number of the loop in its process. */
      readonly index: number;
    }
  /** From a loop that takes no more; answered when the director has removed it. */
  | { readonly type: 'leaving'; readonly loop: number }
  /** The thread of an instance beside this loop has ended by itself. */
  | {
      readonly type: 'instanceLost';
      readonly deployment: number;
      readonly instance: number;
      readonly loop: number;
      readonly why: string;
      readonly stack: string | undefined;
    }
  /** Answered by the deployment's `id` and `name`. */
  | {
      readonly type: 'deploy';
      readonly parent: InstanceId | undefined;
      readonly unit: unknown;
      readonly options: DeployOptions;
    }
  /** Answered by the group's `id` and those of its deployments. */
  | {
      readonly type: 'deployAll';
      readonly parent: InstanceId | undefined;
      readonly units: readonly GroupMember[];
      readonly options: DeployAllOptions;
    }
  | { readonly type: 'undeployGroup'; readonly group: number }
  /** Answered as `DeploymentGroup.ended` settles. */
  | { readonly type: 'awaitGroupEnd'; readonly group: number }
  | { readonly type: 'scale'; readonly deployment: number; readonly instances: number }
  | {
      readonly type: 'move';
      readonly deployment: number;
      readonly instance: number;
      readonly loop: number;
    }
  | { readonly type: 'redeploy'; readonly deployment: number }
  | { readonly type: 'undeploy'; readonly deployment: number }
  | { readonly type: 'status'; readonly deployment: number }
  /** Answered as `Deployment.ended` settles. */
  | { readonly type: 'awaitEnd'; readonly deployment: number }
  | { readonly type: 'askHealth'; readonly deployment: number; readonly timeoutMs: number }
  /** Sends each `InstanceEnd` to this address, while it has a consumer. Answered by false if the deployment has ended. */
  | { readonly type: 'monitor'; readonly deployment: number; readonly to: string };

function unknownMessage(): CodedError {
  return new CodedError(
    'TRANSFER_CORRUPT',
    'a loop got a message unknown to its version of manycore: use one version in all of them',
  );
}

const toUnits: ReadonlySet<unknown> = new Set([
  'start',
  'replace',
  'handOff',
  'restore',
  'askRestored',
  'stop',
  'health',
  'threadHere',
  'exit',
]);
const toDirector: ReadonlySet<unknown> = new Set([
  'cluster',
  'arrived',
  'leaving',
  'instanceLost',
  'deploy',
  'deployAll',
  'undeployGroup',
  'awaitGroupEnd',
  'scale',
  'move',
  'redeploy',
  'undeploy',
  'status',
  'awaitEnd',
  'askHealth',
  'monitor',
]);

function hasType(value: unknown, types: ReadonlySet<unknown>): boolean {
  return typeof value === 'object' && value !== null && types.has(Reflect.get(value, 'type'));
}

/** All loops run the code of this package: the type is checked, the rest is not. */
export function parseToUnits(value: unknown): ToUnits {
  if (hasType(value, toUnits)) return value as ToUnits;
  throw unknownMessage();
}

export function parseToDirector(value: unknown): ToDirector {
  if (hasType(value, toDirector)) return value as ToDirector;
  throw unknownMessage();
}

export function parseBlockedNote(value: unknown): BlockedNote {
  if (typeof value === 'object' && value !== null && 'loop' in value && 'turn' in value) {
    const { loop, turn } = value;
    const isBack = 'isBack' in value && value.isBack === true;
    const forMs = 'forMs' in value ? Number(value.forMs) : 0;
    if (typeof loop === 'number' && typeof turn === 'number') return { loop, turn, isBack, forMs };
  }
  throw unknownMessage();
}

export function parseInstanceEnd(value: unknown): InstanceEnd {
  if (typeof value === 'object' && value !== null && 'reason' in value) return value as InstanceEnd;
  throw unknownMessage();
}

export function parseHealth(value: unknown): readonly InstanceHealth[] {
  if (Array.isArray(value)) return value as readonly InstanceHealth[];
  throw unknownMessage();
}

export function parseStatus(value: unknown): readonly InstanceStatus[] {
  if (Array.isArray(value)) return value as readonly InstanceStatus[];
  throw unknownMessage();
}

export function parseDeployed(value: unknown): { readonly id: number; readonly name: string } {
  if (typeof value === 'object' && value !== null && 'id' in value && 'name' in value) {
    const { id, name } = value;
    if (typeof id === 'number' && typeof name === 'string') return { id, name };
  }
  throw unknownMessage();
}

/** Parses the version of the code of instances that have started; `undefined`: they came as values. */
export function parseVersion(value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw unknownMessage();
}

/** An answer to `deployAll`. */
export interface GroupAnswer {
  readonly id: number;
  readonly deployments: readonly { readonly id: number; readonly name: string }[];
}

export function parseGroup(value: unknown): GroupAnswer {
  if (typeof value === 'object' && value !== null && 'id' in value && 'deployments' in value) {
    const { id, deployments } = value;
    if (typeof id === 'number' && Array.isArray(deployments)) {
      return { id, deployments: deployments.map(parseDeployed) };
    }
  }
  throw unknownMessage();
}

export function parseHandOffTarget(value: unknown): HandOffTarget {
  const isObject = typeof value === 'object' && value !== null && 'bus' in value;
  if (isObject && 'successors' in value && Array.isArray(value.successors))
    return value as HandOffTarget;
  throw unknownMessage();
}

/** The reply to a message: a value, or the error. */
export type Answer = { readonly value: unknown } | { readonly error: unknown };

export function parseAnswer(value: unknown): Answer {
  if (typeof value === 'object' && value !== null) {
    if ('value' in value) return { value: value.value };
    if ('error' in value) return { error: value.error };
  }
  throw unknownMessage();
}

/** Parses the data that a thread is started with: the number of its loop, and its own there. */
export function parseSideData(value: unknown): { readonly loop: number; readonly thread: number } {
  if (typeof value === 'object' && value !== null && 'loop' in value && 'thread' in value) {
    const { loop, thread } = value;
    if (typeof loop === 'number' && typeof thread === 'number') return { loop, thread };
  }
  throw unknownMessage();
}

/** Parses a supervisor's announcement, which any code in the process could publish. */
export function parseBlocked(message: unknown): ServerBlockedMessage {
  if (typeof message === 'object' && message !== null) return message as ServerBlockedMessage;
  throw unknownMessage();
}
