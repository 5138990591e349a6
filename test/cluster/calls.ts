// One call of each kind to a cluster, and what became of it.

import { type Caller, Pool } from '../../src/public.js';
import type { Joined } from './server.js';

/** The result of a call, or the code and the text of its error. */
export type Settled = number | readonly [code: string, text: string];

export type Settlements = Readonly<Record<'request' | 'plain' | 'durable' | 'named', Settled>>;

async function settled(call: Promise<unknown>): Promise<Settled> {
  try {
    return Number(await call);
  } catch (error) {
    const { code, message } = Object(error);
    return [code, message];
  }
}

/** Resolves when all have settled. `named`: a durable task with an id. */
export async function callAll({ bus, cluster }: Joined): Promise<Settlements> {
  await using pool = new Pool({ cluster, startRetryMs: 500 });
  const run = (caller: Pick<Caller, 'run'>) => settled(caller.run((n: number) => n * 2, 21));
  const [request, plain, durable, named] = await Promise.all([
    settled(bus.request('echo', 42).then(({ body }) => body)),
    run(pool),
    run(pool.with({ durable: true })),
    run(pool.with({ durable: { id: 'named' } })),
  ]);
  return { request, plain, durable, named };
}
