// Checks of the program whether it is ready for clients (`readiness`): each is asked once a second, after its last
// answer. The supervisor gets what stands in the way when that changes, and answers /readyz by it (control.ts).

import { messageOf } from '../../lib/index.js';
import type { FromLoop } from '../protocol.js';
import type { ReadinessCheck } from '../self.js';
import type { Link } from '../shared/link.js';

/** Pause between an answer and the next question, in ms. */
const pauseMs = 1000;
/** Time for an answer, in ms; then the check counts as one that says no. */
const limitMs = 5000;
const maxCharacters = 200;

interface Asked {
  /** Set while the check says no. */
  obstacle: string | undefined;
}

export class Readiness {
  readonly #up: Link<FromLoop>;
  readonly #asked = new Set<Asked>();
  #reported: string | undefined;

  constructor(up: Link<FromLoop>) {
    this.#up = up;
  }

  readonly add = (check: ReadinessCheck): void => {
    const asked: Asked = { obstacle: 'a check has not answered yet' };
    this.#asked.add(asked);
    this.#report();
    void this.#ask(check, asked);
  };

  async #ask(check: ReadinessCheck, asked: Asked): Promise<void> {
    const note = (obstacle: string | undefined): void => {
      asked.obstacle = obstacle;
      this.#report();
    };
    const late = `a check has not answered within ${limitMs} ms`;
    const timer = setTimeout(note, limitMs, late).unref();
    const obstacle = await obstacleIn(check);
    clearTimeout(timer);
    note(obstacle);
    setTimeout(() => void this.#ask(check, asked), pauseMs).unref();
  }

  #report(): void {
    const [obstacle] = [...this.#asked].flatMap((each) => each.obstacle ?? []);
    if (obstacle === this.#reported) return;
    this.#reported = obstacle;
    this.#up.post({ body: { type: 'readiness', obstacle: obstacle?.slice(0, maxCharacters) } });
  }
}

/** Asks once; `undefined`: the check says yes. */
async function obstacleIn(check: ReadinessCheck): Promise<string | undefined> {
  try {
    return (await check()) ? undefined : 'a check says no';
  } catch (error) {
    return messageOf(error) || 'a check has failed';
  }
}
