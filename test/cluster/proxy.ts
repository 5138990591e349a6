// What lies between a node and its server: it passes bytes on late, or keeps them for a while, as a network or
// a server does that is slow. Machines that are cut off are in network.ts.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from './server.js';

export interface Proxy {
  readonly url: string;
  /** What goes through the connections that there are now is kept, both ways. */
  hold(): void;
  /** What was kept goes on, also of an end that has gone meanwhile. */
  release(): void;
}

/** Keeps each piece of what passes for `delayMs`, each way. */
export async function startProxy(t: TestContext, { port }: Server, delayMs = 0): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const gates = new Set<Gate>();
  const proxy = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket.on('error', () => {}));
      socket.on('close', () => sockets.delete(socket));
    }
    const gate = new Gate();
    gates.add(gate);
    void pass(near, far, gate, delayMs);
    void pass(far, near, gate, delayMs);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => {
    proxy.close();
    for (const gate of gates) gate.open();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `nats://127.0.0.1:${Object(proxy.address()).port}`,
    hold: () => {
      for (const gate of gates) gate.shut();
    },
    release: () => {
      for (const gate of gates) gate.open();
    },
  };
}

class Gate {
  passing: Promise<void> = Promise.resolve();
  open: () => void = () => {};

  shut(): void {
    this.passing = new Promise((resolve) => {
      this.open = resolve;
    });
  }
}

/** Reads no more than it can pass on, so that who writes feels it. */
async function pass(from: Socket, to: Socket, gate: Gate, delayMs: number): Promise<void> {
  try {
    for await (const bytes of from) {
      if (delayMs > 0) await sleep(delayMs);
      await gate.passing;
      if (!to.write(bytes)) await once(to, 'drain');
    }
  } catch {
    // One end has gone; what it had sent goes on.
  }
  await gate.passing;
  to.end();
}
