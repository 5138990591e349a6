// The messages of a memory channel's port: frames, or a receipt. Parsed here alone.

import { isUint8Array } from 'node:util/types';
import { CodedError } from '../../errors.js';

/** Bytes of whole frames, or a receipt: how many bytes of frames were taken in. */
export type PortMessage = Uint8Array | number;

/** Throws CHANNEL_FRAME_CORRUPT. */
export function parsePortMessage(message: unknown): PortMessage {
  if (isUint8Array(message)) return message; // it may be of another realm, in a test runner's context
  if (typeof message === 'number' && message >= 0) return message;
  throw new CodedError('CHANNEL_FRAME_CORRUPT', `a port delivered ${typeof message}, not frames`);
}
