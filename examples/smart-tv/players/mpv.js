// mpv, over its JSON protocol on a socket pair that it inherits as descriptor 3: no socket file to
// clean up. Every command is answered by a line that has a request_id; events have none.
import { spawn } from 'node:child_process';
import { converse, hasScreen } from './conversation.js';

const requests = {
  play: ['set_property', 'pause', false],
  pause: ['set_property', 'pause', true],
  louder: ['add', 'volume', 5],
  quieter: ['add', 'volume', -5],
};

export function startMpv(file) {
  const output = hasScreen() ? [] : ['--vo=null', '--ao=null'];
  const child = spawn(
    'mpv',
    [
      '--no-config',
      '--no-terminal',
      '--idle=yes',
      '--image-display-duration=inf',
      '--input-ipc-client=fd://3',
      ...output,
      file,
    ],
    { stdio: ['ignore', 'ignore', 'inherit', 'pipe'] },
  );
  const socket = child.stdio[3];
  const { say, died } = converse(child, socket, socket, (line) => line.includes('"request_id"'));
  return {
    child,
    died,
    send: (command) => say(`${JSON.stringify({ command: requests[command], request_id: 1 })}\n`),
  };
}
