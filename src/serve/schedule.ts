// Reloads by schedule (`reloadAt`): croner reads the pattern and computes the times. It is loaded for servers with
// that option only.

import { CodedError } from '../errors.js';
import { invalid, messageOf } from '../lib/index.js';

const example = "as '0 4 * * *' for each day at four";

/** The times of one pattern. */
interface Job {
  resume(): boolean;
  stop(): void;
}

/** Rejects with `OPTION_INVALID` for a pattern that croner refuses, or that has no time to come. */
export async function checkReloadAt(pattern: string | undefined): Promise<void> {
  if (pattern !== undefined) (await pausedJob(pattern, async () => {})).stop();
}

/** Calls a function at the times of a pattern; skips those that come while a call has not ended. */
export class Schedule {
  readonly #onTime: () => Promise<void>;
  #job: Job | undefined;
  #pattern: string | undefined;
  #isClosed = false;

  /** `onTime` handles its own failures. */
  constructor(onTime: () => Promise<void>) {
    this.#onTime = onTime;
  }

  /** Replaces the pattern; `undefined`: none. Rejects with `OPTION_INVALID`, and changes nothing then. */
  async follow(pattern: string | undefined): Promise<void> {
    if (pattern === this.#pattern) return;
    const job = pattern === undefined ? undefined : await pausedJob(pattern, this.#onTime);
    this.#job?.stop();
    this.#job = job;
    this.#pattern = pattern;
    if (this.#isClosed) job?.stop();
    else job?.resume();
  }

  close(): void {
    this.#isClosed = true;
    this.#job?.stop();
  }
}

async function pausedJob(pattern: string, onTime: () => Promise<void>): Promise<Job> {
  const { Cron } = await import('croner');
  const job = readPattern(() => new Cron(pattern, pausedAndAlone, onTime), pattern);
  if (job.nextRun() !== null) return job;
  throw invalid('reloadAt', pattern, `a cron pattern with a time to come, ${example}`);
}

const pausedAndAlone = { paused: true, protect: true, unref: true };

function readPattern<T>(read: () => T, pattern: string): T {
  try {
    return read();
  } catch (cause) {
    const why = messageOf(cause).replace(/^CronPattern: /, '');
    const { message } = invalid('reloadAt', pattern, `a cron pattern, ${example}`);
    throw new CodedError('OPTION_INVALID', `${message} (${why})`, { cause });
  }
}
