// mplayer in slave mode: commands by its standard input. It reads them only between two frames, so a request
// for an answer would measure its frame rate. A press counts as acknowledged when mplayer's pipe has taken
// the command.
import { spawn } from 'node:child_process';
import { hasScreen, whenEnded } from './conversation.js';

const settings = ['-slave', '-idle', '-quiet', '-nolirc', '-noconsolecontrols'];

export function startMplayer(file) {
  const output = hasScreen() ? [] : ['-vo', 'null', '-ao', 'null'];
  // A still picture, shown over and over: five times a second spares the processor.
  const picture = ['-loop', '0', '-mf', 'fps=5', `mf://${file}`];
  const child = spawn('mplayer', [...settings, ...output, ...picture], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.stdin.on('error', () => {}); // passed to the writer below
  let isPaused = false;

  function send(command) {
    const line = lineFor(command, isPaused);
    if (command === 'play' || command === 'pause') isPaused = command === 'pause';
    return new Promise((resolve, reject) => {
      child.stdin.write(line, (error) => {
        if (error) reject(new Error(`the player takes no commands: ${error.message}`));
        else resolve();
      });
    });
  }
  return { child, died: whenEnded(child), send };
}

/** Returns the line for a command, which depends on the last request: mplayer's `pause` toggles. */
function lineFor(command, isPaused) {
  if (command === 'louder') return 'pausing_keep_force volume 5\n';
  if (command === 'quieter') return 'pausing_keep_force volume -5\n';
  return (command === 'pause') === isPaused ? '\n' : 'pause\n';
}
