// Detection of nodes that have left, over a network that loses frames, and with a stranger who forges
// reports of absence.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type TestContext, test } from 'node:test';
import { Nodes } from '../../../src/cluster/bus/nodes.js';
import { Signer } from '../../../src/cluster/bus/signature.js';
import type { NatsConnection } from '../../../src/cluster/nats/nats.js';
import { waitFor } from '../../support/index.js';
import { LossyNetwork } from '../lossy.js';

const secondMs = 1000;
const manySeconds = 60;

interface Node {
  readonly id: string;
  readonly connection: NatsConnection;
  /** `join` or `leave`, each with the other's id. */
  readonly told: string[];
}

class Neighbours {
  readonly network = new LossyNetwork();
  readonly #t: TestContext;
  #count = 0;

  constructor(t: TestContext) {
    this.#t = t;
    t.mock.timers.enable({ apis: ['setInterval', 'Date'] });
  }

  async join(): Promise<Node> {
    this.#count += 1;
    const id = String(this.#count).padStart(24, '0');
    const connection = this.network.connect();
    const signer = new Signer('nobody else knows this', 'name');
    const connected = { connection, inbox: `inbox-${id}`, closed: connection.closed() };
    const nodes = new Nodes(id, 'name', connected, signer);
    const told: string[] = [];
    nodes.on('join', (node) => told.push(`join ${node.id}`));
    nodes.on('leave', (node) => told.push(`leave ${node.id}`));
    await nodes.join();
    this.#t.after(() => nodes.leave());
    await this.arrive();
    return { id, connection, told };
  }

  /** Waits for all frames on their way. */
  async arrive(): Promise<void> {
    await waitFor(() => this.network.isIdle);
  }

  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      this.#t.mock.timers.tick(secondMs);
      await this.arrive();
    }
  }

  /** Drops all frames to and from `node`; returns the function that undoes it. */
  cut({ id, connection }: Node): () => void {
    this.network.copies = (frame) =>
      frame.connection === connection || Buffer.from(frame.data).includes(`"${id}"`) ? 0 : 1;
    return () => {
      this.network.copies = () => 1;
    };
  }

  /** Sends the report of a server that `other`, probed by `node`, has no subscriber. */
  async sayNobody({ id }: Node, other: Node): Promise<void> {
    const subject = `inbox-${id}.node.${other.id}`;
    this.network.publish({ subject, data: new Uint8Array(), headers: { code: 503 } });
    await this.arrive();
  }

  /** Returns the seconds until `isSo`. */
  async secondsUntil(isSo: () => boolean): Promise<number> {
    let seconds = 0;
    for (; !isSo(); seconds += 1) {
      assert.ok(seconds < manySeconds, `never so: ${isSo}`);
      await this.pass(1);
    }
    return seconds;
  }
}

test('a node whose connection has ended leaves sooner than one that is cut off', async (t) => {
  const neighbours = new Neighbours(t);
  const here = await neighbours.join();
  const ended = await neighbours.join();
  await ended.connection.close();
  const endedSeconds = await neighbours.secondsUntil(() => here.told.includes(`leave ${ended.id}`));
  const cutOff = await neighbours.join();
  neighbours.cut(cutOff);
  const cutSeconds = await neighbours.secondsUntil(() => here.told.includes(`leave ${cutOff.id}`));
  assert.ok(cutSeconds > endedSeconds);
});

test('a forged report of absence does not remove a node that still sends', async (t) => {
  const neighbours = new Neighbours(t);
  const [here, there] = [await neighbours.join(), await neighbours.join()];
  await neighbours.sayNobody(here, there);
  await neighbours.pass(manySeconds);
  assert.deepEqual(here.told, [`join ${there.id}`]);
});

test('nor one that sends again after it was silent and probed', async (t) => {
  const neighbours = new Neighbours(t);
  const here = await neighbours.join();
  await neighbours.pass(1); // so that each sends between two beats of the other
  const there = await neighbours.join();
  let isAsked = false;
  const heal = neighbours.cut(there);
  const { copies } = neighbours.network;
  neighbours.network.copies = (frame) => {
    isAsked ||= frame.subject === `name.node.${there.id}`;
    return copies(frame);
  };
  await neighbours.secondsUntil(() => isAsked);
  await neighbours.sayNobody(here, there);
  heal();
  await neighbours.pass(manySeconds);
  assert.deepEqual(here.told, [`join ${there.id}`]);
});

test('a node whose own event loop was blocked takes no other for gone', async (t) => {
  const neighbours = new Neighbours(t);
  const [here, there] = [await neighbours.join(), await neighbours.join()];
  const now = Date.now.bind(Date);
  t.mock.method(Date, 'now', () => now() + 3_600_000);
  await neighbours.pass(manySeconds);
  assert.deepEqual([here.told, there.told], [[`join ${there.id}`], [`join ${here.id}`]]);
});

test('a node with another clock is reported once a minute, and is no neighbour', async (t) => {
  const reports: string[] = [];
  const note = (message: unknown): void => void reports.push(String(Object(message).why));
  subscribe('manycore:cluster:refused', note);
  t.after(() => unsubscribe('manycore:cluster:refused', note));
  const neighbours = new Neighbours(t);
  const [here, there] = [await neighbours.join(), await neighbours.join()];
  const sent: Uint8Array[] = [];
  neighbours.network.copies = ({ connection, subject, data }) => {
    const isOfOther = Buffer.from(data).includes(`"${there.id}"`);
    if (connection === here.connection && subject === 'name.nodes' && isOfOther) sent.push(data);
    return 1;
  };
  await neighbours.pass(3);
  neighbours.cut(there);
  await neighbours.pass(120);
  assert.deepEqual(here.told, [`join ${there.id}`, `leave ${there.id}`]);
  neighbours.network.copies = () => 1;
  assert.ok(sent.length > 0);
  for (const data of [...sent, ...sent]) {
    neighbours.network.publish({ subject: 'name.nodes', data });
    await neighbours.arrive();
  }
  // Nodes of the test before leave with its clock.
  const own = reports.filter((why) => /process \d+ is 12\d s old: the clocks of the/.test(why));
  assert.equal(own.length, 1, reports.join('\n'));
  assert.deepEqual(here.told, [`join ${there.id}`, `leave ${there.id}`]);
});
