// What a thread beside a loop has of its process: the way into the mesh. The other end is
// process-threads.ts.

import { acceptChannel, Wire } from '../channels/index.js';
import { takeWorkerData } from '../internal/index.js';
import { Member } from './member.js';
import type { OnMember } from './mesh.js';
import { type FromLoop, parseTicket, parseToLoop } from './protocol.js';

export interface SideProgram {
  /** What the loop gave it. */
  readonly data: unknown;
  /** As `Member.join`. */
  join(onMember: OnMember): Promise<number>;
}

/** For the program of such a thread; once only. Throws `WORKER_PROTOCOL` in any other. */
export function sideProgram(): SideProgram {
  const ticket = parseTicket(takeWorkerData()); // not for what is loaded there
  if (ticket.kind !== 'side') throw new Error('this is the program of threads beside loops');
  const up = new Wire<FromLoop>(acceptChannel(ticket.channel).channel);
  const member = new Member((message) => up.post(message));
  up.onMessage = (message) => {
    const parsed = parseToLoop(message);
    if (parsed.type === 'members' || parsed.type === 'offered' || parsed.type === 'left') {
      member.receive(parsed);
    }
  };
  return { data: ticket.data, join: (onMember) => member.join(onMember) };
}
