// Which socket answers which query: the rules for ports that programs have found by port 0.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ListenQuery } from '../../../src/serve/protocol.js';
import { Sockets } from '../../../src/serve/supervisor/sockets.js';

const query = (port: number, index = 0, address: string | null = null): ListenQuery => ({
  address,
  port,
  addressType: 4,
  backlog: 0,
  isV6Only: false,
  index,
});

/** Opens sockets in memory; port 0 gets 5001, 5002 and so on. A port in `taken` cannot be bound. */
function make(taken: ReadonlySet<number> = new Set()) {
  let last = 5000;
  const open = new Set<number>();
  const bound: unknown[] = [];
  const sockets = new Sockets(
    {
      inherit: async () => {},
      open: async ({ port: asked }) => {
        if (taken.has(asked) || open.has(asked)) {
          throw Object.assign(new Error('bind EADDRINUSE'), { errno: -98, syscall: 'bind' });
        }
        if (asked === 0) last += 1;
        const port = asked === 0 ? last : asked;
        open.add(port);
        return {
          address: { address: '::', port, family: 'IPv6' as const },
          queues: 0,
          waitingConnections: 0,
          of: () => ({ fd: port }),
          close: () => open.delete(port),
        };
      },
      close: () => {},
    },
    (address) => bound.push(address),
  );
  const listen = async (port: number, index?: number, address?: string | null) => {
    const answer = await sockets.listen(query(port, index, address), 0);
    if ('errno' in answer) return answer.errno;
    const { number, address: at } = answer;
    return { number, port: typeof at === 'string' ? at : at.port };
  };
  return { sockets, listen, open, bound };
}

test('each listen(0) of a program has a port, which is the same in all loops', async () => {
  const { listen } = make();
  assert.deepEqual(await listen(0, 0), { number: 0, port: 5001 });
  assert.deepEqual(await listen(0, 1), { number: 1, port: 5002 });
  assert.deepEqual(await listen(0, 0), { number: 0, port: 5001 });
});

test('a number that listen(0) has found is the same socket, whichever loop comes first', async () => {
  const { sockets, listen, open, bound } = make();
  assert.deepEqual(await listen(0), { number: 0, port: 5001 });
  assert.deepEqual(await listen(5001), { number: 0, port: 5001 }); // a loop that is ahead
  assert.deepEqual(await listen(0), { number: 0, port: 5001 });
  assert.equal(bound.length, 1);
  sockets.release(0);
  assert.deepEqual([...open], []);
  assert.deepEqual(await listen(5001), { number: 0, port: 5001 });
  assert.deepEqual(await listen(0), { number: 0, port: 5001 }); // a loop that is behind
  sockets.release(0);
  assert.deepEqual(await listen(0), { number: 0, port: 5001 });
});

test('a port that another program has taken meanwhile is replaced by a new one', async () => {
  const taken = new Set<number>();
  const { sockets, listen } = make(taken);
  await listen(0);
  sockets.release(0);
  taken.add(5001);
  assert.deepEqual(await listen(0), { number: 0, port: 5002 });
  assert.equal(await listen(5001), -98);
});

test('another address is another socket', async () => {
  const { listen } = make();
  await listen(0);
  assert.equal(await listen(5001, 0, '127.0.0.1'), -98);
});
