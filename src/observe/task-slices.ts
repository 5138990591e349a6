// Follows the tasks in the workers of a thread: its agent sends slices ten times a second while connected.

import { createConnection } from 'node:net';
import { agentNameOf, agentSockets, parseSlice, type TaskSlice } from '../agent/index.js';
import { onLines, socketPath, socketPaths } from '../lib/index.js';

/** A longer slice is dropped. */
const maxSliceChars = 2 ** 20;

/**
 * Calls `onSlice` for each slice, and `onEnd` when the thread has ended. Returns the function that stops
 * both. Throws `RUNTIME_FOLDER_REFUSED`.
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
  socket.on('error', () => {}); // 'close' follows
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
