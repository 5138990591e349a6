// The connection of a loop, or of a thread beside one, to the cluster of its program. A loop that starts
// while no NATS server can be reached begins without, and joins when one can.

import { setTimeout as wait } from 'node:timers/promises';
import type { EventBus } from '../../bus/index.js';
import {
  type ClusterTicket,
  clusterData,
  joinLoop,
  type LoopPeer,
  noData,
  parseTicket,
} from '../../cluster/index.js';
import { hasCode } from '../../errors.js';
import { announcements, beforeDeadline, defer, messageOf } from '../../lib/index.js';
import { ask } from '../ask.js';
import { setLoopData } from '../current.js';
import { directorAddress, farewellAddress } from '../protocol.js';

const retryMs = 2000;
/** A server that takes longer to answer delays no start and no end. */
const flushMs = 5000;

export class Far {
  readonly #bus: EventBus;
  readonly #member: number;
  readonly #link = defer<NonNullable<LoopPeer['link']>>();
  #peer: LoopPeer['peer'] | undefined;
  #data: LoopPeer['link'];
  #isOver = false;

  /** `member`: the number of the loop or thread among all of its program. */
  constructor(bus: EventBus, member: number) {
    this.#bus = bus;
    this.#member = member;
  }

  /**
   * Does nothing where the program is in no cluster. Rejects as `cluster`, but not for an unreachable server.
   */
  async join(): Promise<void> {
    const ticket = await ask(this.#bus, directorAddress, { type: 'cluster' }, Infinity);
    if (ticket === null) return;
    this.#bus.consumer(farewellAddress, () => void this.close());
    const parsed = parseTicket(ticket);
    const isLocal = parsed.options.transport === 'local';
    setLoopData(isLocal ? noData : clusterData(parsed.options, this.#link.promise));
    try {
      this.#joined(await joinLoop(this.#bus, parsed, this.#member));
    } catch (error) {
      if (!hasCode(error, 'CLUSTER_UNREACHABLE')) throw error;
      announcements.clusterRefused.publish({ why: messageOf(error) });
      void this.#joinLater(parsed);
    }
  }

  #joined({ peer, link }: LoopPeer): void {
    this.#peer = peer;
    this.#data = link;
    if (link !== undefined) this.#link.resolve(link);
  }

  async #joinLater(ticket: ClusterTicket): Promise<void> {
    while (!this.#isOver && this.#peer === undefined) {
      await wait(retryMs, undefined, { ref: false });
      await joinLoop(this.#bus, ticket, this.#member).then(
        (joined) => this.#joined(joined),
        () => {},
      );
    }
    if (this.#isOver) await this.#peer?.close();
  }

  /** Resolves when the servers have the subscriptions of the consumers here. */
  async flush(): Promise<void> {
    const flushed = this.#peer?.flush();
    if (flushed === undefined) return;
    const onDeadline = (): Error => new Error('the NATS server is slow');
    await beforeDeadline(flushed, { deadlineMs: flushMs, onDeadline }).catch(() => {});
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#data?.answered();
    await this.#peer?.close();
  }
}
