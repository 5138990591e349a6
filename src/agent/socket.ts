// The socket on which a thread answers questions, in the private folder of this user: lines of questions in,
// lines of JSON out (protocol.ts). Not HTTP, whose requests would count as those of the program. The socket
// never keeps the program alive.

import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { threadId } from 'node:worker_threads';
import {
  onLines,
  ownListening,
  type ProfileAnswer,
  profileThread,
  socketPath,
} from '../lib/index.js';
import { appMetrics } from './app-metrics.js';
import { mayBlock, ownServers } from './own-thread.js';
import { agentSocket, maxQuestionChars, parseProfileQuestion, parseQuestion } from './protocol.js';
import { type SampleOptions, threadSampler } from './sampler.js';
import type { SourceStats } from './stats.js';
import { TaskFeed } from './task-feed.js';

/** Profiles a worker of this thread. Returns the function that gives up. */
type WorkerProfiler = (
  worker: number,
  seconds: number,
  send: (answer: ProfileAnswer) => void,
) => () => void;

/** Opens the socket. `refresh` runs before each read of `sources`, and never rejects. Returns the closer. */
export function openSocket(
  sources: () => readonly SourceStats[],
  refresh: () => Promise<void>,
  profileWorker: WorkerProfiler,
): () => void {
  let path: string;
  try {
    path = socketPath(agentSocket({ pid: process.pid, thread: threadId, mayBlock: mayBlock() }));
    rmSync(path, { force: true }); // left by an earlier process with this number
  } catch {
    return () => {};
  }
  const sampler = threadSampler(sources);
  const connections = new Set<Socket>();
  const server = createServer((connection) => {
    connections.add(connection);
    connection.once('close', () => connections.delete(connection));
    serve(connection, sampler, refresh, profileWorker);
  });
  server.on('error', () => {});
  ownServers.add(server);
  server.listen(ownListening({ path }));
  server.unref();
  const remove = (): void => {
    try {
      rmSync(path, { force: true });
    } catch {
      // The program may have dropped its rights since: the next sampler removes the file.
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
  profileWorker: WorkerProfiler,
): void {
  connection.unref();
  connection.on('error', () => connection.destroy());
  let feed: TaskFeed | undefined;
  let endProfile: (() => void) | undefined;
  connection.once('close', () => {
    feed?.end();
    endProfile?.();
    sampler.release(connection);
  });
  const send = (answer: object): void => void connection.write(`${JSON.stringify(answer)}\n`);
  const writeStats = async (options: SampleOptions = {}): Promise<void> => {
    await refresh();
    if (!connection.destroyed) send(sampler.sample({ ...options, reader: connection }));
  };
  const hasRoom = (): boolean => !connection.writableNeedDrain;
  const disconnect = (): void => void connection.destroy();
  onLines(connection, maxQuestionChars, (line) => {
    const question = parseQuestion(line);
    const profile = parseProfileQuestion(line);
    // A failure here is a defect of manycore: it must not end the observed program.
    if (question === 'stats') writeStats().catch(disconnect);
    else if (question === 'probedStats') writeStats({ probes: true }).catch(disconnect);
    else if (question === 'tasks') feed ??= new TaskFeed({ send, hasRoom, disconnect });
    else if (question === 'appMetrics') appMetrics().then(send, disconnect);
    else if (profile !== undefined) {
      const { seconds, worker } = profile;
      endProfile ??=
        worker === undefined ? profileThread(seconds, send) : profileWorker(worker, seconds, send);
    } else connection.destroy();
  });
}
