// How a host ended, in words and as facts. Not here: what becomes of its tasks (pool/).

import { hasCode } from '../errors.js';
import type { HostExit } from './types.js';

/** "with exit code 3" or "by SIGKILL". */
export function describeExit(exit: HostExit): string {
  if (exit.signal !== null) return `by ${exit.signal}`;
  return `with exit code ${exit.exitCode ?? 'unknown'}`;
}

/** Node's exit code for a command line that it does not understand. */
const wrongFlagExitCode = 9;

/** How a host ended that was never ready; `execArgv` are the flags that the user gave it. */
export function describeEarlyExit(exit: HostExit, execArgv: readonly string[]): string {
  const text = `it ended first, ${describeExit(exit)}`;
  if (exit.exitCode !== wrongFlagExitCode) return text;
  const flags = execArgv.length === 0 ? '' : `execArgv (${execArgv.join(' ')}) and `;
  return `${text}, as Node does for flags that it does not know: look at ${flags}NODE_OPTIONS`;
}

/** A channel that ends with its host says nothing new; one that could not be read further does. */
export function isUnreadable(channelError: Error | undefined): boolean {
  return (
    hasCode(channelError, 'SEGMENT_CORRUPT') ||
    hasCode(channelError, 'CHANNEL_FRAME_CORRUPT') ||
    hasCode(channelError, 'NATIVE_REFUSED') || // no mapping for a large frame
    hasCode(channelError, 'HOST_PROTOCOL')
  );
}
