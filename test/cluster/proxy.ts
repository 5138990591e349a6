// A proxy between a node and its server: it delays bytes, or holds them for a while, like a slow network or
// server. Machines that are cut off are in network.ts.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from './server.js';

export interface Proxy {
  readonly url: string;
  /** Holds all bytes of the present connections, in both directions. */
  hold(): void;
  /** Releases held bytes, also of an end that has closed meanwhile. */
  release(): void;
}

/** Delays all bytes by `delayMs`, in each direction. */
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

/** Reads no more than it can pass on, so that the writer has back-pressure. */
async function pass(from: Socket, to: Socket, gate: Gate, delayMs: number): Promise<void> {
  try {
    for await (const bytes of from) {
      if (delayMs > 0) await sleep(delayMs);
      await gate.passing;
      if (!to.write(bytes)) await once(to, 'drain');
    }
  } catch {
    // one end has closed; its sent bytes continue
  }
  await gate.passing;
  to.end();
}
