// The server's side of load.js: starts that process, gives it orders and passes its samples on.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('./load.js', import.meta.url));

// Time for the process to end before it is killed.
const graceMs = 1000;

export class Thumb {
  #url;
  #child;
  #onSamples = () => {};
  #onDone = () => {};
  #onGone = () => {};

  /** Starts the process, which presses `url` on command. */
  constructor(url) {
    this.#url = url;
    this.#child = fork(program, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#child.on('message', (message) => {
      if (message.samples !== undefined) this.#onSamples(message.samples);
      else this.#onDone(message);
    });
    this.#child.on('exit', () => this.#onGone(new Error('the process that presses has ended')));
  }

  /**
   * Presses for `seconds`; settles with `{ failed, lagP95Ms }` when the last press is answered.
   * `onSamples(samples)` gets the answers as they come: pairs of [due in ms since 1970, response ms].
   */
  press({ ratePerSecond, seconds, seed = 1 }, onSamples) {
    return new Promise((resolve, reject) => {
      this.#onSamples = onSamples;
      this.#onDone = resolve;
      this.#onGone = reject;
      this.#child.send({ url: this.#url, ratePerSecond, seconds, seed });
    });
  }

  /** Presses no more; a `press` under way stays unsettled. */
  release() {
    if (this.#child.connected) this.#child.send('stop');
  }

  /** Ends the process. */
  async close() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#onGone = () => {};
    if (this.#child.connected) this.#child.disconnect();
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), graceMs);
    await gone;
    clearTimeout(killer);
  }
}
