// The four placements of a case's two ends. One of each serves all cases, which have addresses of their own.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createCopy, EventBus } from '../../../src/bus/index.js';
import type { Bus, BusMessage, UnitContext } from '../../../src/public.js';
import { joinHere } from '../../cluster/local/buses.js';
import { joinBus, startServer } from '../../cluster/server.js';
import { waitFor } from '../../support/index.js';
import { startLoops } from '../../units/loops.js';
import { turns } from '../net.js';
import {
  type Act,
  type Case,
  type ConsumerEnd,
  type Ends,
  type JoinedProgram,
  type Kept,
  untilNoted,
} from './case.js';

/** The places of the two ends. */
export interface Place {
  readonly bus: Bus;
  /** Runs `act` at the other end, whose notes go to `notes`. */
  run(act: Act, notes: (value: unknown) => void): Promise<unknown>;
  /** Joins one program more; missing where the ends are in one program. */
  readonly join?: (() => Promise<JoinedProgram>) | undefined;
  /** True: the ends are two programs over NATS. */
  readonly isNats?: boolean;
}

const probe = 'probe';

/** The other end is in this process, too. */
function placeOf(bus: Bus, other: Bus, join?: Place['join']): Place {
  const kept = new Map<string, Kept>();
  other.consumer(probe, (message) => message.reply(true));
  const run = async (act: Act, note: (value: unknown) => void): Promise<unknown> => {
    const result = await act({ bus: other, note, kept });
    await bus.request(probe, 0); // announcements come before its reply
    return result;
  };
  return { bus, run, join };
}

export async function oneLoop(t: TestContext): Promise<Place> {
  const bus = new EventBus({ copy: createCopy() });
  t.after(() => bus.close());
  return placeOf(bus, bus);
}

export async function twoPrograms(t: TestContext): Promise<Place> {
  const join = (): Promise<JoinedProgram> => joinHere(t, 'vertx');
  const [here, there] = [await join(), await join()];
  return await reached(placeOf(here.bus, there.bus, join));
}

/** Resolves once the consumer of the other program is known in this one. */
async function reached(place: Place): Promise<Place> {
  await waitFor(async () => {
    await place.bus.request(probe, 0);
    return true;
  });
  return place;
}

/** With a secret, since some bodies have classes. */
export async function overNats(t: TestContext): Promise<Place> {
  const server = await startServer(t);
  const join = (): Promise<JoinedProgram> => joinBus(t, server, { secret: 'of these programs' });
  const [here, there] = [await join(), await join()];
  return await reached({ ...placeOf(here.bus, there.bus, join), isNats: true });
}

interface Order {
  readonly act: Act;
  readonly notes: string;
}

/** Runs the acts that it gets by the bus. */
function host({ bus }: UnitContext): void {
  const kept = new Map<string, Kept>();
  bus.consumer('act', async (message: BusMessage<Order>) => {
    const { act, notes } = message.body;
    const result = await act({ bus, kept, note: (value) => bus.send(notes, value) });
    await turns(2); // notes of this turn come before the reply
    message.reply(result);
  });
}

export async function twoProcesses(t: TestContext): Promise<Place> {
  const loops = startLoops(t, { processes: 1 });
  await loops.deploy(host);
  const { bus } = loops;
  let runs = 0;
  const run = async (act: Act, note: (value: unknown) => void): Promise<unknown> => {
    runs += 1;
    const notes = `notes ${runs}`;
    bus.consumer(notes, ({ body }) => note(body));
    return (await bus.request('act', { act, notes })).body;
  };
  return { bus, run };
}

function disposeKept({ kept }: ConsumerEnd): void {
  for (const each of kept.values()) each.close();
  kept.clear();
}

let cases = 0;

/** Runs a case; throws what its checks throw. */
export async function runCase(
  { bus, run, join, isNats = false }: Place,
  each: Case,
): Promise<void> {
  cases += 1;
  const notes: unknown[] = [];
  const note = (value: unknown): void => void notes.push(value);
  async function there<Result>(act: (end: ConsumerEnd) => Result): Promise<Awaited<Result>> {
    await turns(2); // else it could overtake messages of this turn to other addresses
    const { result }: { result: Awaited<Result> } = Object({ result: await run(act, note) });
    return result;
  }
  const noted = async (count: number): Promise<readonly unknown[]> => {
    await untilNoted(notes, count);
    await there(() => {});
    return notes;
  };
  const ends: Ends = {
    bus,
    address: `case ${cases}`,
    notes,
    there,
    noted,
    join: async () => {
      assert.ok(join, 'this case needs two programs');
      return await join();
    },
  };
  try {
    await (isNats ? (each.runOverNats ?? each.run) : each.run)?.(ends);
  } finally {
    await run(disposeKept, note);
  }
}
