// Clients that keep their connections, of which some are at one loop, and requests that block it.

import { Agent } from 'node:http';
import type { TestContext } from 'node:test';
import type { LoopStatus, ServedApp } from '../../src/serve/index.js';
import { waitFor } from '../support/index.js';
import { ask } from './client.js';

/** A client of one kept connection; returns the loop that answers. */
export type Client = (path?: string) => Promise<string>;

export function keptClient(t: TestContext, port: number): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  return async (path = '/') => {
    const { body } = await ask(port, path, agent);
    return body.split(' ')[2] ?? body;
  };
}

export interface Clients<Other> {
  /** Blocks the loop of the others. */
  readonly heavy: Client;
  readonly others: readonly Other[];
  readonly home: string;
}

/** Makes connections until so many are at one loop. `homeOf` returns the loop of one. */
export async function atOneLoop<Other>(
  t: TestContext,
  port: number,
  count: number,
  connectOne: () => Promise<{ home: string; other: Other }>,
): Promise<Clients<Other>> {
  const heavies = new Map<string, Client>();
  const byLoop = new Map<string, Other[]>();
  let isHeavyFirst = false;
  return waitFor(async () => {
    const client = keptClient(t, port);
    // Two loops get connections in turn: with one order for all, a loop would get those of one kind.
    isHeavyFirst = !isHeavyFirst;
    if (isHeavyFirst) heavies.set(await client(), client);
    const { home, other } = await connectOne();
    if (!isHeavyFirst) heavies.set(await client(), client);
    const others = [...(byLoop.get(home) ?? []), other];
    byLoop.set(home, others);
    const heavy = heavies.get(home);
    return heavy !== undefined && others.length >= count && { heavy, others, home };
  });
}

export function keptAtOneLoop(
  t: TestContext,
  port: number,
  count: number,
): Promise<Clients<Client>> {
  return atOneLoop(t, port, count, async () => {
    const other = keptClient(t, port);
    return { home: await other(), other };
  });
}

/** Blocks the loop of `heavy` by this query: `block=MS`, or `until=FILE`. */
export async function block(
  server: ServedApp,
  heavy: Client,
  query: string,
): Promise<{ answer: Promise<string> }> {
  const answer = heavy(`/?${query}`);
  answer.catch(() => {});
  await waitFor(() => server.status().some(({ requestsInFlight }) => requestsInFlight > 0));
  return { answer };
}

type Count = 'takenAway' | 'takenOver' | 'requests' | 'openConnections' | 'connections';

export function total(server: ServedApp, key: Count): number {
  return server.status().reduce((sum, each: LoopStatus) => sum + each[key], 0);
}
