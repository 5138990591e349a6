// Selects the player process of the TV, behind one interface for all players. Each file here implements one
// player: its start and the form of its commands. A press uses a player that lives on, because a start costs
// tens of milliseconds of processor. 40 of them a second would be a load of their own, and no TV works so.
// The first press starts the player.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { startFfplay } from './ffplay.js';
import { startMplayer } from './mplayer.js';
import { startMpv } from './mpv.js';
import { startStandIn } from './stand-in.js';

const starters = {
  mpv: startMpv,
  mplayer: startMplayer,
  ffplay: startFfplay,
  'stand-in': startStandIn,
};

/** Best first: mpv answers every command by number, mplayer takes commands, ffplay takes none. */
export const playerNames = Object.keys(starters);

/** Commands of a remote control to a player. */
export const commands = ['play', 'pause', 'louder', 'quieter'];

/** The first player that this machine has; always one, since the stand-in comes with the example. */
export function findPlayer() {
  return playerNames.find((name) => name === 'stand-in' || isOnPath(name));
}

/** The player in words: a stand-in must not pass for a real one. */
export function describePlayer(name, wasAskedFor) {
  if (name !== 'stand-in') return name;
  const reason = wasAskedFor ? '' : ': neither mpv, mplayer nor ffplay is on PATH';
  return `a stand-in process that comes with the example${reason}`;
}

/**
 * Starts a player that shows `file`. Returns `{ child, send, died }`. `child` is its process. `send(command)`
 * settles when the player has acknowledged the command, and rejects when it ended before. `died` is a promise
 * that resolves, with the reason, when it ends.
 */
export function startPlayer(name, file) {
  return starters[name](file);
}

function isOnPath(name) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
