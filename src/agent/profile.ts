// CPU profile of this thread, by the inspector: for `manycore profile`. The inspector is loaded at the first
// request. Several profiles may run at a time, also beside those of DevTools.

import { clearTimeout, messageOf, setTimeout } from '../lib/index.js';

/** One line of the answer: `started`, then `profile`; or `problem`. */
export interface ProfileAnswer {
  readonly started?: true;
  /** The content of a file `.cpuprofile`. */
  readonly profile?: object;
  /** The reason why there is no profile. */
  readonly problem?: string;
}

/** Profiles this thread for some seconds. Returns the function that gives up. Never throws. */
export function profileThread(seconds: number, send: (answer: ProfileAnswer) => void): () => void {
  let end = (): void => {};
  let isGivenUp = false;
  const run = async (): Promise<void> => {
    const { Session } = await import('node:inspector');
    if (isGivenUp) return;
    const session = new Session();
    session.connect(); // throws where the inspector is not allowed (--permission)
    session.post('Profiler.enable');
    session.post('Profiler.start');
    const timer = setTimeout(() => {
      session.post('Profiler.stop', (error, { profile }) => {
        send(error === null ? { profile } : { problem: messageOf(error) });
        session.disconnect();
      });
    }, seconds * 1000).unref();
    end = () => {
      clearTimeout(timer);
      session.disconnect();
    };
    send({ started: true });
  };
  run().catch((error: unknown) => send({ problem: messageOf(error) }));
  return () => {
    isGivenUp = true;
    end();
  };
}
