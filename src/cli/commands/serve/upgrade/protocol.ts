// Messages between the first process of a server (the head) and the one that serves in its place (the successor), over
// Node's channel. Both may be of different versions of manycore: fields are only added, and what is unknown is
// dropped. Descriptors go ahead of their message: to a successor as it starts, to the head over a control socket.

import { CodedError } from '../../../../errors.js';
import { messageOf } from '../../../../lib/index.js';
import type { Handover } from '../../../../serve/index.js';

/** Variable of the environment that makes a process a successor. */
export const successorVariable = 'MANYCORE_SUCCESSOR';
export const protocolVersion = 1;
/** Descriptors of a successor: Node's channel is before them. */
export const controlFd = 4;
export const firstSocketFd = 5;
/** Descriptors of one message over a control socket. */
export const maxPassedFds = 8;

export interface Failure {
  readonly message: string;
  readonly code?: string | undefined;
}

export type ToSuccessor =
  /** The sockets are open from `firstSocketFd` on, in this order. `pid` is that of the head. */
  | { readonly type: 'begin'; readonly pid: number; readonly handover: Handover }
  /** It has the sockets alone from now on. */
  | { readonly type: 'begun' }
  /** The predecessor accepts nothing any more. */
  | { readonly type: 'ring' }
  | { readonly type: 'signal'; readonly signal: string }
  /** End, as by `TERM`; `isAtOnce`: as by a second one. */
  | { readonly type: 'end'; readonly isAtOnce: boolean }
  /** Requests `handedOver`, or `refused`; then `keep` or `leave` follows. */
  | { readonly type: 'handOver' }
  /** The successor of the receiver does not start: the receiver serves on. */
  | { readonly type: 'keep'; readonly failure: Failure }
  /** The successor of the receiver serves: the receiver drains and ends. */
  | { readonly type: 'leave' };

export type Notification = 'ready' | 'reloading' | 'stopping';

export type ToHead =
  /** Requests `begin`; `limitMs` is the time that it may need to start. */
  | { readonly type: 'hello'; readonly version: number; readonly limitMs: number }
  | { readonly type: 'serving'; readonly status: string }
  | { readonly type: 'failed'; readonly failure: Failure }
  /** `fd` of each socket is meaningless. */
  | { readonly type: 'handedOver'; readonly handover: Handover }
  | { readonly type: 'refused'; readonly failure: Failure }
  /** It has left: its sockets are closed, or drain. */
  | { readonly type: 'left' }
  /** A client asks for the next successor. */
  | { readonly type: 'upgrade' }
  /** State for the service manager, which gets messages of the head alone. */
  | { readonly type: 'notify'; readonly what: Notification; readonly status: string };

const fromHead: Readonly<Record<ToSuccessor['type'], true>> = {
  begin: true,
  begun: true,
  ring: true,
  signal: true,
  end: true,
  handOver: true,
  keep: true,
  leave: true,
};
const fromSuccessor: Readonly<Record<ToHead['type'], true>> = {
  hello: true,
  serving: true,
  failed: true,
  handedOver: true,
  refused: true,
  left: true,
  upgrade: true,
  notify: true,
};

/** Returns a message of the head; `undefined` for an unknown one. Both ends are this user's manycore. */
export function fromHeadOf(value: unknown): ToSuccessor | undefined {
  return isOf<ToSuccessor>(value, fromHead) ? value : undefined;
}

/** The same for a message of a successor. */
export function fromSuccessorOf(value: unknown): ToHead | undefined {
  return isOf<ToHead>(value, fromSuccessor) ? value : undefined;
}

function isOf<Message extends { readonly type: string }>(
  value: unknown,
  known: Readonly<Record<string, true>>,
): value is Message {
  const { type }: { type?: unknown } = Object(value);
  return typeof type === 'string' && Object.hasOwn(known, type);
}

export function failureOf(error: unknown): Failure {
  const code = error instanceof CodedError ? error.code : undefined;
  return { message: messageOf(error), code };
}

export function upgradeFailed({ message, code }: Failure): CodedError {
  const shown = code === undefined || code === 'SERVE_UPGRADE_FAILED' ? '' : ` (${code})`;
  return new CodedError('SERVE_UPGRADE_FAILED', `${message}${shown}`);
}
