// Local buses in a folder that ends with the test, and members in this process.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createCopy, EventBus } from '../../../src/bus/index.js';
import { type Cluster, fillClusterOptions, joinCluster } from '../../../src/cluster/index.js';
import type { Connected } from '../../conformance/transport.js';

/** Makes a folder for the sockets of this process and those that it starts; call it before any of them joins. */
export function useFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'bus-'));
  process.env['XDG_RUNTIME_DIR'] = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'manycore');
}

export interface JoinedHere {
  readonly bus: EventBus;
  readonly cluster: Cluster;
}

/** Joins the bus `name` as a program of its own would. */
export async function joinHere(t: TestContext, name: string): Promise<JoinedHere> {
  const bus = new EventBus({ copy: createCopy() });
  const cluster = await joinCluster(bus, fillClusterOptions({ transport: 'local', name }));
  t.after(async () => {
    await cluster.close();
    bus.close();
  });
  return { bus, cluster };
}

let openBuses = 0;

/** Returns two programs on a bus of their own, for the conformance suite. */
export async function openLocal(t: TestContext): Promise<Connected> {
  openBuses += 1;
  const name = `transport-${openBuses}`;
  const [sender, receiver] = [await joinHere(t, name), await joinHere(t, name)];
  return { sender: sender.bus, receiver: receiver.bus, end: () => receiver.cluster.close() };
}
