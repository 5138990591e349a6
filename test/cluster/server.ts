// NATS servers that end with their test, each on a port of its own, and buses on them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createCopy, EventBus } from '../../src/bus/index.js';
import {
  type Cluster,
  type ClusterOptions,
  fillClusterOptions,
  joinCluster,
} from '../../src/cluster/index.js';
import { connectNats, type NatsConnection } from '../../src/cluster/nats/nats.js';
import { announcements } from '../../src/lib/index.js';
import { freePort, waitFor } from '../support/index.js';

/** Set by scripts/test.mjs; empty where no server can be had. */
export const natsProgram = process.env['MANYCORE_TEST_NATS'] ?? '';
export const skip = natsProgram === '' && 'needs nats-server (Debian: apt-get install nats-server)';

const firstLineMs = 1000;
const jetStreamName: string = '@nats-io/jetstream'; // its declarations are too loose for our compiler

export interface Server {
  readonly url: string;
  readonly port: number;
  readonly child: ChildProcess;
  /** Ends it at once, and starts another on the same port. */
  restart(): Promise<void>;
  kill(): Promise<void>;
}

/** Rejects while nothing answers at the port, also when the server there says nothing. */
async function answers(port: number): Promise<true> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'data', { signal: AbortSignal.timeout(firstLineMs) });
  } finally {
    socket.destroy();
  }
  return true;
}

/** `flags`: those of nats-server. */
export async function startServer(t: TestContext, flags: readonly string[] = []): Promise<Server> {
  const port = await freePort();
  const store = mkdtempSync(join(tmpdir(), 'manycore-nats-'));
  const args = ['-a', '127.0.0.1', '-p', String(port), '-sd', store, ...flags];
  const start = async (): Promise<ChildProcess> => {
    const started = spawn(natsProgram, args, { stdio: 'ignore' });
    await waitFor(() => answers(port));
    return started;
  };
  let child = await start();
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  t.after(async () => {
    await kill();
    rmSync(store, { recursive: true, force: true });
  });
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    get child() {
      return child;
    },
    kill,
    restart: async () => {
      await kill();
      child = await start();
    },
  };
}

/** Starts a server with the text of a configuration file. */
export async function startConfigured(t: TestContext, text: string): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-nats-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'nats.conf');
  writeFileSync(file, text);
  return await startServer(t, ['-c', file]);
}

/** Starts a server that stores 100 kB, whatever the limits of its streams. */
export async function startSmallServer(t: TestContext): Promise<Server> {
  return await startConfigured(t, 'jetstream { max_file_store: 100KB }');
}

/** Sets the limit of a stream in bytes; `-1`: none. */
export async function limitStream(
  t: TestContext,
  { url }: Server,
  stream: string,
  maxBytes: number,
): Promise<void> {
  const { jetstreamManager } = await import(jetStreamName);
  const manager = await jetstreamManager(await stranger(t, url));
  await manager.streams.update(stream, { max_bytes: maxBytes });
}

/** Waits until `check` throws no more. */
export async function eventually(check: () => unknown, deadlineMs?: number): Promise<void> {
  await waitFor(async () => {
    await check();
    return true;
  }, deadlineMs);
}

export interface Joined {
  readonly bus: EventBus;
  readonly cluster: Cluster;
}

/** Returns a separate bus in the cluster, as if on another machine. */
export async function joinBus(
  t: TestContext,
  { url }: Pick<Server, 'url'>,
  options: Partial<ClusterOptions> = {},
): Promise<Joined> {
  const bus = new EventBus({ copy: createCopy() });
  const cluster = await joinCluster(bus, fillClusterOptions({ nats: url, ...options }));
  t.after(async () => {
    await cluster.close();
    bus.close();
  });
  return { bus, cluster };
}

/** Returns a client of the server that is no node. */
export async function stranger(t: TestContext, url: string): Promise<NatsConnection> {
  const { connection } = await connectNats(fillClusterOptions({ nats: url }), 'stranger');
  t.after(() => connection.close());
  return connection;
}

/** Reasons for which this process refused frames and nodes. */
export function refusals(t: TestContext): string[] {
  const all: string[] = [];
  const note = (message: unknown): void => void all.push(Object(message).why);
  announcements.clusterRefused.subscribe(note);
  t.after(() => announcements.clusterRefused.unsubscribe(note));
  return all;
}

let inboxes = 0;

/** Sends a request without a body; returns all answers that arrive before that of the server. */
export async function answersOf(tool: NatsConnection, subject: string): Promise<object[]> {
  inboxes += 1;
  const inbox = `_INBOX.tool.${inboxes}`;
  const answers: object[] = [];
  let isOver = false;
  const callback = (
    _: Error | null,
    { data, headers }: { data: Uint8Array; headers?: unknown },
  ) => {
    if (data.byteLength === 0) isOver = headers !== undefined;
    else answers.push(JSON.parse(Buffer.from(data).toString()));
  };
  const subscription = tool.subscribe(inbox, { callback });
  tool.publish(subject, new Uint8Array(), { reply: inbox });
  await waitFor(() => isOver || answers.length > 0);
  subscription.unsubscribe();
  return answers;
}
