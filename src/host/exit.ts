// How a host ended, in words and as facts. Not here: what becomes of its tasks (pool/).

import { hasCode } from '../errors.js';
import type { HostExit } from './types.js';

/** "with exit code 3" or "by SIGKILL". */
export function describeExit(exit: HostExit): string {
  if (exit.signal !== null) return `by ${exit.signal}`;
  return `with exit code ${exit.exitCode ?? 'unknown'}`;
}

/** A channel that ends with its host says nothing new; one that held damaged bytes does. */
export function hasDamage(channelError: Error | undefined): boolean {
  return (
    hasCode(channelError, 'SEGMENT_CORRUPT') ||
    hasCode(channelError, 'CHANNEL_FRAME_CORRUPT') ||
    hasCode(channelError, 'HOST_PROTOCOL')
  );
}
