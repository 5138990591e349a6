// The stand-in: a player process for machines without mpv, mplayer or ffplay. It shows nothing, but
// it is a process of its own that is started, spoken to and ended as they are. It reads one command a
// line and answers each with one line, `ok …`, once it has carried it out; it ends with its input.
import { createInterface } from 'node:readline';

const state = { isPlaying: false, volumePercent: 50 };

const commands = {
  play: () => {
    state.isPlaying = true;
  },
  pause: () => {
    state.isPlaying = false;
  },
  louder: () => {
    state.volumePercent = Math.min(100, state.volumePercent + 5);
  },
  quieter: () => {
    state.volumePercent = Math.max(0, state.volumePercent - 5);
  },
};

// Ctrl-C reaches every process of the terminal; the server ends its player itself.
process.on('SIGINT', () => {});

createInterface({ input: process.stdin }).on('line', (line) => {
  const command = Object.hasOwn(commands, line) ? commands[line] : undefined;
  command?.();
  const word = command === undefined ? 'unknown' : 'ok';
  process.stdout.write(`${word} ${line} ${state.isPlaying} ${state.volumePercent}\n`);
});
