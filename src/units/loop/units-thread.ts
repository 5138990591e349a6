// The program of a thread beside a loop, in which one instance may block: joins the mesh as loops do, and
// runs its loop's instance. Not here: when it ends (side-units.ts).

import { Server } from 'node:net';
import { markAsBlocking, ownServers } from '../../agent/index.js';
import { BusLink, createCopy, EventBus } from '../../bus/index.js';
import { CodedError } from '../../errors.js';
import { sideProgram } from '../../serve/index.js';
import { finishWork } from '../../worker/index.js';
import { answer, ask } from '../ask.js';
import { BlockedPeers } from '../blocked-peers.js';
import { setLoopBus } from '../current.js';
import { loopAddress, parseSideData, parseToUnits } from '../protocol.js';
import { awaitPeers } from './await-peers.js';
import { Far } from './loop-cluster.js';
import { LoopUnits } from './loop-units.js';

markAsBlocking();
const side = sideProgram();
const { loop, thread } = parseSideData(side.data);
const copy = createCopy();
const bus = new EventBus({ copy });
setLoopBus(bus);

// Connections are placed on loops, which have time for them.
const { listen } = Server.prototype;
Server.prototype.listen = function (this: Server, ...args: unknown[]) {
  if (ownServers.has(this)) return Reflect.apply(listen, this, args);
  throw new CodedError(
    'OPTION_INVALID',
    "a unit that is deployed with on: 'blocking' cannot listen: listen in a unit on a loop, which sends requests to this one",
  );
};

const links = new Map<number, BusLink>();
const member = await side.join((id, end) => {
  const link = new BusLink(bus, end);
  links.set(id, link);
  link.ref(); // an end without waiting requests would sleep at once, and wake late
  void link.closed.then(() => links.delete(id));
});
const units = new LoopUnits(loop, bus, copy, async () => {});
new BlockedPeers(bus, member, links);
const far = new Far(bus, member);
answer(bus, loopAddress(member), async (message) => {
  const request = parseToUnits(message);
  if (request.type !== 'exit') {
    const answered = await units.handle(request);
    if (request.type === 'start') await far.flush(); // as loops do
    return answered;
  }
  setImmediate(() => void exit());
  return undefined;
});
await awaitPeers(links.values());
await far.join();
await ask(bus, loopAddress(loop), { type: 'threadHere', thread, member }, Infinity);

/** Exits when everything that was sent is on its way, also through this thread to a successor of its instance. */
async function exit(): Promise<void> {
  await bus.parts.handOffs.left();
  await bus.drained();
  await far.close();
  for (const link of links.values()) link.close();
  finishWork(() => process.exit());
}
