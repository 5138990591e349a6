// ffplay takes keys in its window and nothing else. So play and pause let its process run or stop,
// and the kernel's word that it did is the acknowledgement; volume stays as it is.
import { spawn } from 'node:child_process';
import { hasScreen } from './conversation.js';

const signals = { play: 'SIGCONT', pause: 'SIGSTOP' };

export function startFfplay(file) {
  const nowhere = { SDL_VIDEODRIVER: 'dummy', SDL_AUDIODRIVER: 'dummy' };
  const child = spawn('ffplay', ['-loglevel', 'error', '-loop', '0', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: hasScreen() ? process.env : { ...process.env, ...nowhere },
  });
  const started = new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => reject(new Error(`the player did not start: ${error.message}`)));
  });
  started.catch(() => {}); // told by `send`
  const died = new Promise((resolve) => {
    child.once('error', resolve);
    child.once('exit', (code, signal) =>
      resolve(new Error(`the player ended (${signal ?? code})`)),
    );
  });
  return {
    child,
    died,
    send: async (command) => {
      await started;
      const signal = signals[command];
      if (signal !== undefined && !child.kill(signal)) throw new Error('the player has ended');
    },
  };
}
