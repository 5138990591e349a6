// Answers within a call: functions of Node that return with a result (`listen()` with an address, `process.chdir()`)
// do so in a loop, too, although the answer is a message.

import type { Link } from '../shared/link.js';

/** Maximum wait for an answer, in ms. */
const limitMs = 5000;
/** Time between two attempts to receive, in ms. */
const pauseMs = 1;
/** Nobody changes this word: a thread waits on it to sleep. */
const sleepWord = new Int32Array(new SharedArrayBuffer(4));

/**
 * Receives messages of a link, in this call of the program, until `isDone` returns true. Returns false where the
 * link cannot receive in a call (`Link.poll`), or when the answer takes too long: then it comes later.
 */
export function receiveUntil(link: Link, isDone: () => boolean): boolean {
  const endMs = performance.now() + limitMs;
  while (link.poll?.() === true) {
    if (isDone()) return true;
    if (performance.now() > endMs) return false;
    Atomics.wait(sleepWord, 0, 0, pauseMs);
  }
  return false;
}
