// The parent's half of CPU profiles of a worker. A process profiles itself at a frame (own-profiles.ts). A thread
// is profiled from here by the inspector, also in the middle of a task.

import { type ProfileAnswer, profileAnswerOf, profileOtherThread } from '../../lib/index.js';
import type { Link } from '../link.js';
import { frame } from '../protocol.js';

type Send = (answer: ProfileAnswer) => void;

export class ProfileRequests {
  readonly #link: Link;
  readonly #open = new Map<number, Send>();
  #last = 0;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Requests a profile. Returns the function that gives up. `threadId`: that of a thread of this process. */
  start(seconds: number, threadId: number | undefined, send: Send): () => void {
    this.#last += 1;
    const number = this.#last;
    this.#open.set(number, send);
    if (threadId !== undefined) {
      const giveUp = profileOtherThread(threadId, seconds, (answer) =>
        this.answered(number, answer),
      );
      return () => {
        this.#open.delete(number);
        giveUp();
      };
    }
    this.#link.post(frame.profile, 0, number, seconds);
    return () => {
      if (this.#open.delete(number)) this.#link.post(frame.profile, 0, number, 0);
    };
  }

  /** Takes an answer; that of a profile that was given up is dropped. */
  answered(number: number, value: unknown): void {
    const answer = profileAnswerOf(value) ?? { problem: 'its answer is no profile' };
    const send = this.#open.get(number);
    if (answer.started !== true) this.#open.delete(number);
    send?.(answer);
  }

  /** Ends all: the worker has ended. */
  end(): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const send of open) send({ problem: 'it has ended' });
  }
}
