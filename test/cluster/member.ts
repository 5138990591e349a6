// A test's side of a program on a machine of its network (apps/member.ts): functions go there as text, so
// they get all that they need as arguments.

import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { EventBus } from '../../src/bus/index.js';
import type { Cluster, ClusterOptions } from '../../src/cluster/index.js';
import type { Pool } from '../../src/public.js';
import type { Machine } from './network.js';

const program = fileURLToPath(new URL('./apps/member.js', import.meta.url));

/** An event of the member's cluster. */
export interface Told {
  readonly type: 'join' | 'leave' | 'lost' | 'back' | 'refused';
  readonly pid?: number;
  readonly unconfirmed?: number;
  readonly why?: string;
}

/** Objects for the functions of a test. */
export interface Inside {
  readonly bus: EventBus;
  readonly cluster: Cluster;
  readonly Pool: typeof Pool;
  readonly told: Told[];
  /** Values that one function leaves for the next. */
  // biome-ignore lint/suspicious/noExplicitAny: it is the test's own
  readonly kept: Record<string, any>;
}

export class Member {
  readonly pid: number;
  /** Calls `work` there, and resolves with its result; an error has its `code`. */
  readonly ask: <A extends unknown[], R>(
    work: (inside: Inside, ...args: A) => R,
    ...args: A
  ) => Promise<Awaited<R>>;

  constructor(pid: number, ask: Member['ask']) {
    this.pid = pid;
    this.ask = ask;
  }

  /** Events of this type, in their order. */
  async told(type: Told['type']): Promise<Told[]> {
    const told = await this.ask((inside) => inside.told);
    return told.filter((each) => each.type === type);
  }

  /** Number of events of this type. */
  async count(type: Told['type'], pid?: number): Promise<number> {
    const told = await this.told(type);
    return told.filter((each) => pid === undefined || each.pid === pid).length;
  }
}

/** Starts a program in the cluster, on this machine. */
export async function startMember(
  machine: Pick<Machine, 'start'>,
  options: ClusterOptions,
): Promise<Member> {
  const command = [process.execPath, program, JSON.stringify(options)];
  const child = machine.start(command, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const waiting = new Map<
    number,
    (answer: { result: never; code: string; stack: string }) => void
  >();
  let last = 0;
  await once(child, 'message');
  child.on('message', (message) => waiting.get(Object(message).id)?.(Object(message)));
  return new Member(Number(child.pid), async (work, ...args) => {
    last += 1;
    const id = last;
    const answered = new Promise<{ result: never; code: string; stack: string }>((resolve) => {
      waiting.set(id, resolve);
    });
    child.send({ id, source: String(work), args });
    const { result, code, stack } = await answered;
    waiting.delete(id);
    if (stack !== undefined) throw Object.assign(new Error(`over there: ${stack}`), { code });
    return result;
  });
}
