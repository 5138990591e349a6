// Chooses the channel of a pool: shared memory where the native core works, else what Node has by itself.
// The fallback emits one warning per process; an unavailable channel that was named is an error.

import type { ChannelKind } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { sharedMemoryProblem } from '../../worker/index.js';
import type { FilledPoolOptions } from '../options.js';

let hasWarned = false;

/** Returns the channel for these options. Throws `CHANNEL_UNAVAILABLE`. */
export function chooseChannel(options: FilledPoolOptions): ChannelKind {
  const { channel, worker, cluster } = options;
  if (cluster !== undefined) return 'socket';
  const fallback = worker === 'process' ? 'socket' : 'memory';
  const problem = channel === fallback ? undefined : sharedMemoryProblem();
  if (channel === 'auto') {
    if (problem === undefined) return 'shm';
    warnOnce(fallback, problem);
    return fallback;
  }
  if (channel === 'shm' && problem !== undefined) {
    throw new CodedError(
      'CHANNEL_UNAVAILABLE',
      `channel "shm" is unavailable: ${problem.message}; use channel "auto"`,
      { cause: problem },
    );
  }
  if (channel !== 'shm' && channel !== fallback) {
    throw new CodedError(
      'CHANNEL_UNAVAILABLE',
      `channel "${channel}" does not reach a ${worker}: use "${fallback}" or "auto"`,
    );
  }
  return channel;
}

function warnOnce(fallback: ChannelKind, problem: CodedError): void {
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(
    `calls go over the ${fallback} channel, which is slower: ${problem.message}`,
    { type: 'ManycoreWarning', code: problem.code },
  );
}
