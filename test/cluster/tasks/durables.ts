// Set-up for tests of durable tasks: a server with JetStream, nodes, pools.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { TaskStore } from '../../../src/cluster/tasks/jetstream.js';
import { type Caller, Pool, task } from '../../../src/public.js';
import { withDeadline } from '../../support/index.js';
import { joinBus, type Server, startServer, stranger } from '../server.js';

export const secret = 'nobody else knows this';
export const tasksUrl = new URL('../apps/tasks.js', import.meta.url);
export const note = task<(file: string, line: string) => string>(tasksUrl, 'note');
export const double = task<(n: number) => number>(tasksUrl, 'double');

export const untilGo = task<(file: string) => Promise<string>>(tasksUrl, 'untilGo');

export function startDurable(t: TestContext): Promise<Server> {
  return startServer(t, ['-js']);
}

export interface WorkerNeeds {
  readonly secret?: string;
  readonly workers?: number;
  /** `durable`, or the URL of a module whose exports may be called. */
  readonly tasks?: string;
  readonly env?: NodeJS.ProcessEnv;
}

export async function startNode(
  t: TestContext,
  { url }: Server,
  { secret: known = secret, workers = 1, tasks = 'durable', env }: WorkerNeeds = {},
): Promise<ChildProcess> {
  const args = [url, known, String(workers), tasks];
  const node = fork(new URL('../apps/provider.js', import.meta.url), args, {
    env: { ...process.env, ...env },
  });
  t.after(() => node.kill('SIGKILL'));
  await once(node, 'message');
  return node;
}

export async function openPool(t: TestContext, server: Server): Promise<Pool> {
  const { cluster } = await joinBus(t, server, { secret });
  const pool = new Pool({ cluster });
  t.after(() => pool.destroy());
  return pool;
}

export async function durable(t: TestContext, server: Server): Promise<Caller> {
  return (await openPool(t, server)).with({ durable: true });
}

/** Opens the streams as a client without the secret. */
export async function openStore(t: TestContext, { url }: Server): Promise<TaskStore> {
  return await TaskStore.open(await stranger(t, url), 'manycore');
}

/** Time after which a question to the server counts as lost: it may have ended with the question. */
const answerMs = 5000;

/**
 * Counts the tasks that wait for a node or are with one. Rejects when the server does not answer. The messages in
 * the stream are more: after a kill the server has messages again that were acknowledged just before, and delivers
 * them to no node.
 */
export async function openCounts(t: TestContext, { url }: Server): Promise<() => Promise<number>> {
  const connection = await stranger(t, url);
  const waiting = new Map<string, (answer: Buffer) => void>();
  connection.subscribe('counts.*', {
    callback: (_error, { subject, data }) => waiting.get(subject)?.(Buffer.from(data)),
  });
  let asked = 0;
  return async () => {
    asked += 1;
    const reply = `counts.${asked}`; // an answer that comes late is that of its own question
    const answered = new Promise<Buffer>((resolve) => waiting.set(reply, resolve));
    const subject = '$JS.API.CONSUMER.INFO.manycore-tasks.nodes';
    connection.publish(subject, Buffer.alloc(0), { reply });
    const answer = await withDeadline(answered, answerMs, 'the counts of the server');
    const { num_pending, num_ack_pending, error } = JSON.parse(answer.toString());
    if (error !== undefined) throw new Error(error.description);
    return num_pending + num_ack_pending;
  };
}

export function notesFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-notes-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'notes');
}

/** Returns the calls of `note`. */
export function notesIn(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(0, -1);
  } catch {
    return [];
  }
}
