// Text lines out of a socket. `node:readline` passes an error of its input on, as an event of its own that
// ends the process where nobody listens.

import type { Socket } from 'node:net';

/** Calls `onLine` for each whole line; a connection whose line is longer than `maxChars` is destroyed. */
export function onLines(socket: Socket, maxChars: number, onLine: (line: string) => void): void {
  socket.setEncoding('utf8');
  let rest = '';
  socket.on('data', (text) => {
    const lines = (rest + String(text)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
    if (rest.length > maxChars) socket.destroy();
  });
}
