// mplayer in slave mode: commands by its standard input. It acknowledges nothing by itself, so each
// command is followed by a question, and the answer to that means that the command is done.
import { spawn } from 'node:child_process';
import { converse, hasScreen } from './conversation.js';

const question = 'pausing_keep_force get_property pause';

export function startMplayer(file) {
  const output = hasScreen() ? [] : ['-vo', 'null', '-ao', 'null'];
  const child = spawn(
    'mplayer',
    [
      '-slave',
      '-idle',
      '-quiet',
      '-nolirc',
      '-noconsolecontrols',
      '-loop',
      '0',
      ...output,
      `mf://${file}`,
    ],
    { stdio: ['pipe', 'pipe', 'ignore'] },
  );
  const { say, died } = converse(child, child.stdin, child.stdout, (line) =>
    /^ANS_(pause|ERROR)=/.test(line),
  );
  // `pause` toggles, so what was asked for last is remembered here.
  let isPaused = false;
  return {
    child,
    died,
    send: (command) => {
      const wantsPause = command === 'pause';
      const isToggle = (command === 'play' || wantsPause) && wantsPause !== isPaused;
      if (isToggle) isPaused = wantsPause;
      const request =
        { louder: 'volume 5', quieter: 'volume -5' }[command] ?? (isToggle ? 'pause' : '');
      const line =
        request === '' ? '' : `${isToggle ? request : `pausing_keep_force ${request}`}\n`;
      return say(`${line}${question}\n`);
    },
  };
}
