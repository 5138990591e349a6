// Where a thread answers who asks for its figures: a socket in the private folder of this user, on which
// each line that comes is a question, and each line that goes a JSON answer (protocol.ts). No HTTP: its
// requests would count as those of the program. It never keeps the program alive.

import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { threadId } from 'node:worker_threads';
import { onLines, socketPath } from '../internal/index.js';
import type { SourceFigures } from './figures.js';
import { agentServers, mayBlock } from './own-thread.js';
import { agentSocket, mostQuestionChars, parseQuestion } from './protocol.js';
import { type LookOptions, threadSampler } from './sampler.js';
import { TaskFeed } from './task-feed.js';

/** `refresh` goes before each reading of `sources`, and never rejects. Returns what closes it. */
export function openSocket(
  sources: () => readonly SourceFigures[],
  refresh: () => Promise<void>,
): () => void {
  let path: string;
  try {
    path = socketPath(agentSocket({ pid: process.pid, thread: threadId, mayBlock: mayBlock() }));
    rmSync(path, { force: true }); // of an earlier process with this number
  } catch {
    return () => {};
  }
  const sampler = threadSampler(sources);
  const connections = new Set<Socket>();
  const server = createServer((connection) => {
    connections.add(connection);
    connection.once('close', () => connections.delete(connection));
    serve(connection, sampler, refresh);
  });
  server.on('error', () => {});
  agentServers.add(server);
  server.listen({ path, exclusive: true });
  server.unref();
  const remove = (): void => {
    try {
      rmSync(path, { force: true });
    } catch {
      // The program may have given up the rights that it had: whoever looks next removes it.
    }
  };
  process.once('exit', remove);
  return () => {
    sampler.stop();
    server.close();
    for (const connection of connections) connection.destroy();
    process.off('exit', remove);
    remove();
  };
}

function serve(
  connection: Socket,
  sampler: ReturnType<typeof threadSampler>,
  refresh: () => Promise<void>,
): void {
  connection.unref();
  connection.on('error', () => connection.destroy());
  let feed: TaskFeed | undefined;
  connection.once('close', () => {
    feed?.end();
    sampler.leave(connection);
  });
  const tell = (answer: object): void => void connection.write(`${JSON.stringify(answer)}\n`);
  const tellFigures = async (options: LookOptions = {}): Promise<void> => {
    await refresh();
    if (!connection.destroyed) tell(sampler.look({ ...options, asker: connection }));
  };
  const hasRoom = (): boolean => !connection.writableNeedDrain;
  const letGo = (): void => void connection.destroy();
  onLines(connection, mostQuestionChars, (line) => {
    const question = parseQuestion(line);
    // A look that fails is a defect of ours: it must not end the program that is looked at.
    if (question === 'figures') tellFigures().catch(letGo);
    else if (question === 'probedFigures') tellFigures({ probes: true }).catch(letGo);
    else if (question === 'tasks') feed ??= new TaskFeed({ tell, hasRoom, letGo });
    else connection.destroy();
  });
}
