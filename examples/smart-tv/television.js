// The TV: its buttons, and the player process behind them. The first press starts the player, later ones use
// it. A press is answered when the player has acknowledged it.
import { commands, startPlayer } from './players/index.js';

// Time for a player to end on request before it is killed.
const graceMs = 1000;

/** Every button: what players understand, and `stop`, which ends the player. */
export const buttons = [...commands, 'stop'];

export class Television {
  #playerName;
  #file;
  #player;
  #isPlaying = false;
  #volumePercent = 50;
  #onChange;

  /** `onChange()` is called when `state` has become another. */
  constructor(playerName, file, onChange) {
    this.#playerName = playerName;
    this.#file = file;
    this.#onChange = onChange;
  }

  /** State for the pages: `pid` is `undefined` while no player runs. */
  get state() {
    return {
      player: this.#playerName,
      isPlaying: this.#isPlaying,
      volumePercent: this.#volumePercent,
      pid: this.#player?.child.pid,
    };
  }

  /** Settles when the player has acknowledged the button; rejects with the reason when it cannot. */
  async press(button) {
    if (button === 'stop') return this.close();
    this.#player ??= this.#start();
    await this.#player.send(button);
    this.#noteDone(button);
  }

  /** Ends the player. The next press starts another. */
  async close() {
    const player = this.#player;
    if (player === undefined) return;
    player.child.kill('SIGTERM');
    player.child.kill('SIGCONT'); // one that is stopped would not see it
    const killer = setTimeout(() => player.child.kill('SIGKILL'), graceMs);
    await player.died;
    clearTimeout(killer);
  }

  #start() {
    const player = startPlayer(this.#playerName, this.#file);
    void player.died.then(() => {
      if (this.#player === player) this.#player = undefined;
      this.#isPlaying = false;
      this.#onChange();
    });
    return player;
  }

  #noteDone(button) {
    const before = `${this.#isPlaying} ${this.#volumePercent}`;
    if (button === 'play' || button === 'pause') this.#isPlaying = button === 'play';
    if (button === 'louder') this.#volumePercent = Math.min(100, this.#volumePercent + 5);
    if (button === 'quieter') this.#volumePercent = Math.max(0, this.#volumePercent - 5);
    if (before !== `${this.#isPlaying} ${this.#volumePercent}`) this.#onChange();
  }
}
