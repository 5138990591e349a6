// The program of every loop of units: joins the other loops, and runs the director's instances.

import { BusLink, createCopy, EventBus } from '../../bus/index.js';
import { programLoop } from '../../serve/index.js';
import { answer, ask } from '../ask.js';
import { BlockedPeers } from '../blocked-peers.js';
import { setLoopBus } from '../current.js';
import { directorAddress, loopAddress, parseToUnits } from '../protocol.js';
import { awaitPeers } from './await-peers.js';
import { Far } from './loop-cluster.js';
import { LoopUnits } from './loop-units.js';
import { SideUnits } from './side-units.js';

/** For the instances that an arriving loop gets back; each start in it has a deadline of its own. */
const noLimitMs = Infinity;

const loop = programLoop();
if (loop === undefined) throw new Error('this is the program of loops that manycore starts');
const copy = createCopy();
const bus = new EventBus({ copy });
setLoopBus(bus);

try {
  const links = new Map<number, BusLink>();
  const number = await loop.join((id, end) => {
    const link = new BusLink(bus, end);
    links.set(id, link);
    link.ref(); // an end without waiting requests would sleep at once, and wake late
    void link.closed.then(() => links.delete(id));
  });
  new BlockedPeers(bus, number, links);
  const far = new Far(bus, number);
  const units = new LoopUnits(number, bus, copy, (server) => loop.quiet(server));
  const entry = new URL('./units-thread.js', import.meta.url);
  const sides = new SideUnits({
    loop: number,
    bus,
    startThread: (thread) => loop.startThread(entry, { loop: number, thread }),
  });
  loop.attend({
    ownerOf: (server) => units.ownerOf(server),
    onDrain: async (deadlineMs) => {
      await ask(bus, directorAddress, { type: 'leaving', loop: number }, deadlineMs).catch(
        () => {},
      );
      await Promise.all([units.endAll(deadlineMs), sides.endAll(deadlineMs)]);
      await far.close();
      for (const link of links.values()) link.close();
    },
  });
  await awaitPeers(links.values());
  await far.join();
  answer(bus, loopAddress(number), async (message) => {
    const request = parseToUnits(message);
    const answered = await (sides.isFor(request) ? sides : units).handle(request);
    const hasStarted = request.type === 'start' || request.type === 'replace';
    if (hasStarted) await far.flush(); // other machines have its subscriptions
    return answered;
  });
  const { index } = loop;
  const arrival = { type: 'arrived', loop: number, pid: process.pid, index } as const;
  await ask(bus, directorAddress, arrival, noLimitMs);
  loop.ready();
} catch (error) {
  loop.failed(error);
}
