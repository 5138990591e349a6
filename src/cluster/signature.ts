// Who may be believed in a cluster: frames end with a signature that only those can make who know the secret
// (HMAC-SHA-256, RFC 2104), over all that is in them and where they go. A frame that came before, or is
// old, is refused; that is why frames have numbers and times. Without a secret nothing is signed, and no
// code is taken from anybody.

import {
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto';
import { refused } from './errors.js';
import { type FrameHead, signatureBytes } from './protocol.js';

/** A frame that is older was held back by somebody, or the clocks of the machines differ; in ms. */
export const maxAgeMs = 60_000;
/** Numbers behind the highest that may still come. */
export const windowSize = 4096;

export class Signer {
  /** Not the bytes: Node 24 takes five times as long for them. */
  readonly #key: KeyObject;

  /** `name` is the cluster's: its frames are no good in another one. */
  constructor(secret: string, name: string) {
    const key = hkdfSync('sha256', secret, name, 'manycore cluster', 32);
    this.#key = createSecretKey(Buffer.from(key));
  }

  /** Fills the end of a frame that goes to `target`. */
  sign(frame: Buffer, target: string): void {
    const size = frame.byteLength - signatureBytes;
    this.#mac(frame.subarray(0, size), target).copy(frame, size);
  }

  #mac(bytes: Uint8Array, target: string): Buffer {
    return createHmac('sha256', this.#key).update(target).update('\0').update(bytes).digest();
  }

  /** The frame without its signature. Throws `CLUSTER_REFUSED`. */
  verify(signed: Buffer, target: string): Buffer {
    const size = signed.byteLength - signatureBytes;
    if (size >= 0) {
      const bytes = signed.subarray(0, size);
      if (timingSafeEqual(this.#mac(bytes, target), signed.subarray(size))) return bytes;
    }
    throw refused('a frame is not signed with the secret of this cluster');
  }
}

/** Of what is signed. Throws `CLUSTER_REFUSED`. */
export function checkAge({ time }: FrameHead, now: number): void {
  if (Math.abs(now - time) <= maxAgeMs) return;
  const seconds = Math.round((now - time) / 1000);
  throw refused(`a frame is ${seconds} s old: it was sent again, or the clocks differ`);
}

/** What came, without its signature where there is a secret. Throws `CLUSTER_REFUSED`. */
export function verified(
  signer: Signer | undefined,
  { buffer, byteOffset, byteLength }: Uint8Array,
  target: string,
): Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  return signer === undefined ? bytes : signer.verify(bytes, target);
}

/** Which frames of one sender came. */
export class ReplayWindow {
  #highest = -1;
  readonly #seen = new Uint8Array(windowSize);

  /** Once for each frame. Throws `CLUSTER_REFUSED`. */
  check({ number }: FrameHead): void {
    if (!Number.isSafeInteger(number) || number < 0) throw refused('a frame has no number');
    if (number <= this.#highest - windowSize) {
      throw refused('a frame was sent again, or comes late from a connection that is over');
    }
    if (number > this.#highest) {
      const passed = Math.min(number - this.#highest, windowSize);
      for (let at = number - passed + 1; at <= number; at += 1) this.#seen[at % windowSize] = 0;
      this.#highest = number;
    }
    if (this.#seen[number % windowSize] === 1) throw refused('a frame was sent again');
    this.#seen[number % windowSize] = 1;
  }
}
