// Notices of nodes about durable tasks that they refuse for their time. Without one a caller whose clock differs
// from that of the server would wait for ever. A notice names the signature of the refused frame, and the number
// under which the server has stored it: so a caller distinguishes its own frame from a recording that was stored again.
// Not here: when a task is refused (task-runner.ts), and what follows for the caller (durable.ts).

import { type Signer, verified } from '../bus/signature.js';
import { corrupt, jsonOf, signatureBytes } from '../protocol.js';

export interface TaskNotice {
  /** Signature of the refused frame, in base64. */
  readonly signature: string;
  /** Sequence number of the frame in the stream of tasks. */
  readonly seq: number;
  /** Seconds from its signing, by the clock of the caller, to its storing, by that of the server. */
  readonly seconds: number;
}

/** Returns the subject of the notices in a cluster. */
export function noticeSubject(name: string): string {
  return `${name}.refused`;
}

/** Returns the signature of a durable task, in base64. */
export function signatureOf(frame: Uint8Array): string {
  return Buffer.from(frame.subarray(-signatureBytes)).toString('base64');
}

/** Writes and signs a notice. */
export function writeNotice(signer: Signer, subject: string, notice: TaskNotice): Buffer {
  const text = Buffer.from(JSON.stringify(notice));
  const frame = Buffer.concat([text, Buffer.alloc(signatureBytes)]);
  signer.sign(frame, subject);
  return frame;
}

/** Throws `CLUSTER_REFUSED`, `TRANSFER_CORRUPT`. */
export function readNotice(signer: Signer, subject: string, frame: Uint8Array): TaskNotice {
  const { signature, seq, seconds } = Object(jsonOf(verified(signer, frame, subject)));
  if (typeof signature === 'string' && Number.isFinite(seq) && Number.isFinite(seconds)) {
    return { signature, seq, seconds };
  }
  throw corrupt('a notice about a durable task');
}
