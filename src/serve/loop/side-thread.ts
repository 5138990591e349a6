// Access of a thread beside a loop to the mesh, through its process. The other end is process-threads.ts.

import { acceptChannel } from '../../channels/index.js';
import { takeWorkerData } from '../../lib/index.js';
import { type FromLoop, parseToLoop } from '../protocol.js';
import { threadPort, WireLink } from '../shared/link.js';
import type { OnMember } from '../supervisor/mesh.js';
import { parseTicket } from '../tickets.js';
import { Member } from './member.js';

export interface SideProgram {
  /** Data from the loop. */
  readonly data: unknown;
  /** As `Member.join`. */
  join(onMember: OnMember): Promise<number>;
}

/** For the program of such a thread, to be called once. Throws `WORKER_PROTOCOL` in other threads. */
export function sideProgram(): SideProgram {
  const ticket = parseTicket(takeWorkerData()); // hidden from modules that are loaded later
  if (ticket.kind !== 'side') throw new Error('this is the program of threads beside loops');
  const up = new WireLink<FromLoop>(acceptChannel(ticket.channel).channel, threadPort, {
    onEnvelope: (envelope) => {
      const message = parseToLoop(envelope);
      switch (message.type) {
        case 'members':
        case 'offered':
        case 'left':
        case 'returned':
          member.receive(message);
      }
    },
  });
  const member = new Member(up);
  return { data: ticket.data, join: (onMember) => member.join(onMember) };
}
