// What travels through the port of a memory channel: frames, or a receipt. Parsed here alone.

import { isUint8Array } from 'node:util/types';
import { CodedError } from '../../errors.js';

/** Bytes of whole frames; a number says how many bytes of frames were taken in. */
export type PortMessage = Uint8Array | number;

/** Throws CHANNEL_FRAME_CORRUPT. */
export function parsePortMessage(message: unknown): PortMessage {
  if (isUint8Array(message)) return message; // of another realm in a test runner's context
  if (typeof message === 'number' && message >= 0) return message;
  throw new CodedError('CHANNEL_FRAME_CORRUPT', `a port delivered ${typeof message}, not frames`);
}
