// CPU profiles of this thread and of others, by the inspector: for `manycore profile`. The inspector is loaded at
// the first request. Several profiles may run at a time, also beside those of DevTools.

import type { Session } from 'node:inspector';
import { isMainThread } from 'node:worker_threads';
import { messageOf } from '../message.js';
import { attachToThread } from './inspected-thread.js';
import { clearInterval, clearTimeout, setInterval, setTimeout } from './timers.js';

/** One line of the answer: `started`, then `profile`; or `problem`. */
export interface ProfileAnswer {
  readonly started?: true;
  /** The content of a file `.cpuprofile`. */
  readonly profile?: object;
  /** The reason why there is no profile. */
  readonly problem?: string;
}

type ProfilerMethod =
  | 'Profiler.enable'
  | 'Profiler.start'
  | 'Profiler.startPreciseCoverage'
  | 'Profiler.stopPreciseCoverage';

/** Interval of a timer in ms: messages of the main thread do not wake a sleeping thread (Node 20 to 26). */
const wakeEveryMs = 10;

/** Parses an answer of another thread or process; `undefined`: it is none. */
export function profileAnswerOf(value: unknown): ProfileAnswer | undefined {
  if (!isObject(value)) return undefined;
  const { started, profile, problem }: ProfileAnswer = value;
  if (started === true) return { started };
  if (typeof problem === 'string') return { problem };
  return isObject(profile) ? { profile } : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/**
 * Profiles this thread for some seconds. Returns the function that gives up. Never throws. `isHeld`: the event
 * loop stays alive until the end.
 */
export function profileThread(
  seconds: number,
  send: (answer: ProfileAnswer) => void,
  { isHeld = false } = {},
): () => void {
  return withSession(send, (session, done) => {
    session.connect(); // throws where the inspector is not allowed (--permission)
    startWith((method) => session.post(method));
    const timer = setTimeout(() => {
      session.post('Profiler.stop', (error, { profile }) => {
        done(error === null ? { profile } : { problem: messageOf(error) });
      });
    }, seconds * 1000);
    if (!isHeld) timer.unref();
    send({ started: true });
    return () => clearTimeout(timer);
  });
}

/** Profiles another thread of this process in the same way, also while it is busy in JavaScript. */
export function profileOtherThread(
  threadId: number,
  seconds: number,
  send: (answer: ProfileAnswer) => void,
): () => void {
  return withSession(send, (session, done) => {
    if (isMainThread) session.connect();
    else session.connectToMainThread();
    const awake = setInterval(() => {}, wakeEveryMs).unref();
    let timer: NodeJS.Timeout | undefined;
    attachToThread(session, threadId, {
      onAttached: (thread) => {
        const startId = startWith((method) => thread.post(method));
        let stopId = 0;
        thread.onMessage(({ id, result, error }) => {
          if (error !== undefined && (id === startId || id === stopId)) {
            done({ problem: String(error.message) });
          } else if (id === startId) {
            timer = setTimeout(() => {
              stopId = thread.post('Profiler.stop');
            }, seconds * 1000).unref();
            send({ started: true });
          } else if (id === stopId) {
            done(profileAnswerOf(result) ?? { problem: 'its answer has no profile' });
          }
        });
      },
      onDetached: () => done({ problem: 'it has ended' }),
      onFailed: (problem) => done({ problem }),
    });
    return () => {
      clearInterval(awake);
      clearTimeout(timer);
    };
  });
}

/** Starts the profiler with `post`; returns what the call of the start returns. */
function startWith<Result>(post: (method: ProfilerMethod) => Result): Result {
  post('Profiler.enable');
  const result = post('Profiler.start');
  // V8 attributes code that was optimized in the middle of a loop to the caller. Coverage discards such code;
  // what V8 compiles from now on has its name. Where the coverage is the user's it must not end here.
  if (process.env['NODE_V8_COVERAGE'] === undefined) {
    post('Profiler.startPreciseCoverage');
    post('Profiler.stopPreciseCoverage');
  }
  return result;
}

/** Runs `start` with a session of its own; it returns the function that clears up. Calls `send` no more after the end. */
function withSession(
  send: (answer: ProfileAnswer) => void,
  start: (session: Session, done: (answer: ProfileAnswer) => void) => () => void,
): () => void {
  let session: Session | undefined;
  let clear: (() => void) | undefined;
  let isOver = false;
  const end = (): void => {
    isOver = true;
    clear?.();
    session?.disconnect();
  };
  const done = (answer: ProfileAnswer): void => {
    if (isOver) return;
    end();
    send(answer);
  };
  const run = async (): Promise<void> => {
    const inspector = await import('node:inspector');
    if (isOver) return;
    session = new inspector.Session();
    clear = start(session, done);
    if (isOver) clear();
  };
  run().catch((error: unknown) => done({ problem: messageOf(error) }));
  return () => {
    if (!isOver) end();
  };
}
