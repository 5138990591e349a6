// What runs in the workers of a thread, as it ends: told by its agent ten times a second while somebody listens.

import { createConnection } from 'node:net';
import { agentNameOf, agentSockets, parseSlice, type TaskSlice } from '../agent/index.js';
import { onLines, socketPath, socketPaths } from '../internal/index.js';

/** A longer slice is none. */
const maxSliceChars = 2 ** 20;

/**
 * Calls `onSlice` until what is returned is called, or the thread is gone, which calls `onEnd`. Throws
 * `RUNTIME_FOLDER_REFUSED`.
 */
export function followTasks(
  of: { readonly pid: number; readonly thread: number },
  onSlice: (slice: TaskSlice) => void,
  onEnd: () => void = () => {},
): () => void {
  const path = socketPaths(agentSockets).find((each) => {
    const { pid, thread } = agentNameOf(each);
    return pid === of.pid && thread === of.thread;
  });
  const socket = createConnection(path ?? socketPath('gone'));
  socket.on('error', () => {}); // closed, then
  socket.on('close', onEnd);
  onLines(socket, maxSliceChars, (line) => {
    const slice = parseSlice(line);
    if (slice !== undefined) onSlice(slice);
  });
  socket.write('tasks\n');
  return () => {
    socket.off('close', onEnd);
    socket.destroy();
  };
}
