// ffplay takes keys in its window and nothing else. So play and pause let its process run or stop,
// and the kernel's word that it did is the acknowledgement; volume stays as it is.
import { spawn } from 'node:child_process';
import { hasScreen, whenEnded } from './conversation.js';

const signals = { play: 'SIGCONT', pause: 'SIGSTOP' };

export function startFfplay(file) {
  const nowhere = { SDL_VIDEODRIVER: 'dummy', SDL_AUDIODRIVER: 'dummy' };
  const child = spawn('ffplay', ['-loglevel', 'error', '-loop', '0', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: hasScreen() ? process.env : { ...process.env, ...nowhere },
  });
  const died = whenEnded(child);

  async function send(command) {
    if (child.pid === undefined) throw await died;
    const signal = signals[command];
    if (signal !== undefined && !child.kill(signal)) throw await died;
  }
  return { child, died, send };
}
