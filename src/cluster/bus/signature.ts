// Signatures of frames (HMAC-SHA-256, RFC 2104) over content and target, which only holders of the secret
// can make. A frame that is a repetition, or is old, is refused; frames have numbers and times for that.
// Without a secret nothing is signed, and code of others is never accepted.

import {
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto';
import type { CodedError } from '../../errors.js';
import { refused } from '../errors.js';
import { type FrameHead, signatureBytes } from '../protocol.js';

/**
 * Age limit of frames, in ms. An older one was held back by somebody, or the clocks of the machines differ.
 */
export const maxAgeMs = 60_000;
/** Width of the window behind the highest number in which frames may still arrive. */
export const windowSize = 4096;

export class Signer {
  /** A key object, not bytes: with bytes Node 24 takes five times as long. */
  readonly #key: KeyObject;

  /** `name` is the cluster's: a signature is valid in this cluster only. */
  constructor(secret: string, name: string) {
    const key = hkdfSync('sha256', secret, name, 'manycore cluster', 32);
    this.#key = createSecretKey(Buffer.from(key));
  }

  /** Writes the signature for `target` into the last bytes of `frame`. */
  sign(frame: Buffer, target: string): void {
    const size = frame.byteLength - signatureBytes;
    this.#mac(frame.subarray(0, size), target).copy(frame, size);
  }

  #mac(bytes: Uint8Array, target: string): Buffer {
    return createHmac('sha256', this.#key).update(target).update('\0').update(bytes).digest();
  }

  /** Returns the frame without its signature. Throws `CLUSTER_REFUSED`. */
  verify(signed: Buffer, target: string): Buffer {
    const size = signed.byteLength - signatureBytes;
    if (size >= 0) {
      const bytes = signed.subarray(0, size);
      if (timingSafeEqual(this.#mac(bytes, target), signed.subarray(size))) return bytes;
    }
    throw refused('a frame is not signed with the secret of this cluster');
  }
}

/** Checks the time of a signed frame. Throws `CLUSTER_REFUSED`. */
export function checkAge({ time }: FrameHead, now: number): void {
  if (Math.abs(now - time) <= maxAgeMs) return;
  throw refused(wrongTime('a frame', now - time));
}

/**
 * Returns whether the clock of a member differs from this one, by a message that it has just sent. A message that
 * it refused for its time alone may be a recording, and then the clocks agree.
 */
export function isOtherClock(time: number, now: number): boolean {
  return Math.abs(now - time) > maxAgeMs / 2;
}

/** Returns the error of a sender whose clock is so many seconds behind that of `others`. */
export function clocksDiffer(what: string, others: string, seconds: number): CodedError {
  const by = `${Math.abs(Math.round(seconds))} s ${seconds > 0 ? 'behind' : 'ahead of'}`;
  return refused(
    `${what} was refused: the clock of this machine is ${by} that of ${others}: synchronize them, by NTP`,
  );
}

/** Returns the sentence about a message that is `ageMs` old by the clock here. */
export function wrongTime(what: string, ageMs: number): string {
  const seconds = Math.round(Math.abs(ageMs) / 1000);
  const age = ageMs > 0 ? `${seconds} s old` : `dated ${seconds} s ahead`;
  return `${what} is ${age}: the clocks of the machines differ (synchronize them, by NTP), or it was sent again`;
}

/** Returns the content; with a signer it verifies and removes the signature. Throws `CLUSTER_REFUSED`. */
export function verified(
  signer: Signer | undefined,
  { buffer, byteOffset, byteLength }: Uint8Array,
  target: string,
): Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  return signer === undefined ? bytes : signer.verify(bytes, target);
}

/** Frame numbers of one sender that have arrived. */
export class ReplayWindow {
  #highest = -1;
  readonly #seen = new Uint8Array(windowSize);

  /** Records a frame. Throws `CLUSTER_REFUSED` for a repetition. */
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
