// What travels through the port of a memory channel: frames, or a receipt. Parsed here alone.

import { CodedError } from '../../errors.js';

/** Bytes of whole frames; a number says how many bytes of frames were taken in. */
export type PortMessage = Uint8Array | number;

/** Throws CHANNEL_FRAME_CORRUPT. */
export function parsePortMessage(message: unknown): PortMessage {
  if (message instanceof Uint8Array) return message;
  if (typeof message === 'number' && message >= 0) return message;
  throw new CodedError('CHANNEL_FRAME_CORRUPT', `a port delivered ${typeof message}, not frames`);
}
