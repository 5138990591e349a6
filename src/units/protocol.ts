// What the loops and their director tell each other, over the bus, under addresses of manycore's own, and
// the functions that believe it.

import { type HandOffTarget, reservedPrefix } from '../bus/index.js';
import { CodedError } from '../errors.js';
import type { ServerBlockedMessage } from '../internal/index.js';
import type { DeployOptions, InstanceHealth, InstanceStatus, UnitPlacement } from './types.js';

/** Where the director is: the process that started the loops. */
export const directorAddress = `${reservedPrefix}director`;

/** Published where the program has left its cluster: its loops and their threads do, too. */
export const farewellAddress = `${reservedPrefix}farewell`;

export function loopAddress(loop: number): string {
  return `${reservedPrefix}loop:${loop}`;
}

/** Where instances get their code: a module, or the unit itself. */
export type UnitSource =
  | { readonly kind: 'module'; readonly url: string }
  | { readonly kind: 'value'; readonly value: unknown };

/** An instance, in all loops. */
export interface InstanceId {
  readonly deployment: number;
  readonly instance: number;
  /** The number of the loop where it is: one that moves is in two for a moment. */
  readonly loop: number;
}

/** To a loop. */
export type ToUnits =
  /** Answered when all of these run; with an error none does. */
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
      /** It comes from another loop: nobody is to know of its consumers yet. */
      readonly isIncoming: boolean;
    }
  /** The instance goes to another loop, where it has started; answered when it has left. */
  | {
      readonly type: 'handOff';
      readonly deployment: number;
      readonly instance: number;
      readonly to: number;
      readonly saveTimeoutMs: number;
      readonly restoreTimeoutMs: number;
    }
  /** From the loop where the instance was, at whose bus `from` it has nothing to do any more; a `HandOffTarget`. */
  | {
      readonly type: 'restore';
      readonly deployment: number;
      readonly instance: number;
      readonly state: unknown;
      readonly from: string;
      readonly timeoutMs: number;
    }
  /** Answered by whether the instance that came has its state; it waits for that. */
  | { readonly type: 'askRestored'; readonly deployment: number; readonly instance: number }
  /** Answered when these are gone, which they are with an error, too. */
  | {
      readonly type: 'stop';
      readonly deployment: number;
      readonly instances: readonly number[];
      readonly stopTimeoutMs: number;
    }
  /** Answered by a list of `InstanceHealth`. */
  | { readonly type: 'health'; readonly deployment: number; readonly timeoutMs: number }
  /** To the loop of a thread, from that: it is there, with this number in the mesh. */
  | { readonly type: 'threadHere'; readonly thread: number; readonly member: number }
  /** To a thread, whose instance of this deployment has ended. */
  | { readonly type: 'exit'; readonly deployment: number };

/** To the director. */
export type ToDirector =
  /** A loop wants to be in the cluster of the program; answered by a `ClusterTicket`, or null. */
  | { readonly type: 'cluster' }
  /** A loop is there; answered when it has the instances of the one whose place it takes. */
  | {
      readonly type: 'arrived';
      readonly loop: number;
      readonly pid: number;
      /** Its number in its process. */
      readonly index: number;
    }
  /** It takes no more; answered when nothing of it is known any more. */
  | { readonly type: 'leaving'; readonly loop: number }
  /** The thread of an instance beside this loop has ended by itself. */
  | {
      readonly type: 'instanceLost';
      readonly deployment: number;
      readonly instance: number;
      readonly loop: number;
      readonly why: string;
    }
  /** Answered by the deployment's `id` and `name`. */
  | {
      readonly type: 'deploy';
      readonly parent: InstanceId | undefined;
      readonly unit: unknown;
      readonly options: DeployOptions;
    }
  | { readonly type: 'scale'; readonly deployment: number; readonly instances: number }
  | {
      readonly type: 'move';
      readonly deployment: number;
      readonly instance: number;
      readonly loop: number;
    }
  | { readonly type: 'undeploy'; readonly deployment: number }
  | { readonly type: 'status'; readonly deployment: number }
  | { readonly type: 'askHealth'; readonly deployment: number; readonly timeoutMs: number };

function unknownMessage(): CodedError {
  return new CodedError(
    'TRANSFER_CORRUPT',
    'a loop was told what this version of manycore does not know: use one version in all of them',
  );
}

const toUnits: ReadonlySet<unknown> = new Set([
  'start',
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
  'scale',
  'move',
  'undeploy',
  'status',
  'askHealth',
]);

function hasType(value: unknown, types: ReadonlySet<unknown>): boolean {
  return typeof value === 'object' && value !== null && types.has(Reflect.get(value, 'type'));
}

/** All loops run the code of this package: the type is checked, and the rest believed. */
export function parseToUnits(value: unknown): ToUnits {
  if (hasType(value, toUnits)) return value as ToUnits;
  throw unknownMessage();
}

export function parseToDirector(value: unknown): ToDirector {
  if (hasType(value, toDirector)) return value as ToDirector;
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

export function parseHandOffTarget(value: unknown): HandOffTarget {
  const isObject = typeof value === 'object' && value !== null && 'bus' in value;
  if (isObject && 'successors' in value && Array.isArray(value.successors))
    return value as HandOffTarget;
  throw unknownMessage();
}

/** What answers a message: a value, or why there is none. */
export type Answer = { readonly value: unknown } | { readonly error: unknown };

export function parseAnswer(value: unknown): Answer {
  if (typeof value === 'object' && value !== null) {
    if ('value' in value) return { value: value.value };
    if ('error' in value) return { error: value.error };
  }
  throw unknownMessage();
}

/** What a thread is started with: the number of its loop, and its own there. */
export function parseSideData(value: unknown): { readonly loop: number; readonly thread: number } {
  if (typeof value === 'object' && value !== null && 'loop' in value && 'thread' in value) {
    const { loop, thread } = value;
    if (typeof loop === 'number' && typeof thread === 'number') return { loop, thread };
  }
  throw unknownMessage();
}

/** What the supervisor announces, to whoever listens in its process. */
export function parseBlocked(message: unknown): ServerBlockedMessage {
  if (typeof message === 'object' && message !== null) return message as ServerBlockedMessage;
  throw unknownMessage();
}
