// The input of a program in a guest of User-mode Linux. It goes over a serial line, which loses what comes before it is
// open, more than it has memory for, and what has come when its other end is closed. So the guest requests each part.
// A part is a line of hexadecimal digits; the end is a character of its own. The other side is
// crates/enter/src/guest.rs.

import { type Duplex, type Readable, Writable } from 'node:stream';

/** Bytes in a part: the line holds 4 KiB. */
const partBytes = 1024;
const end = '.';

/** Passes what comes from `input` on; returns the function that ends that. */
export function passInput(input: Readable, guest: Duplex): () => void {
  guest.on('error', () => {}); // it has ended
  guest.once('data', () => input.pipe(partsFor(guest)));
  return () => {
    input.unpipe();
    input.destroy();
  };
}

/** Takes input, the first of which the guest has requested. */
function partsFor(guest: Duplex): Writable {
  const send = (chunk: Buffer, done: () => void): void => {
    guest.once('data', () =>
      chunk.length > partBytes ? send(chunk.subarray(partBytes), done) : done(),
    );
    guest.write(`${chunk.toString('hex', 0, partBytes)}\n`);
  };
  return new Writable({
    write: (chunk: Buffer, _, done) => send(chunk, done),
    final: (done) => {
      guest.write(end);
      done();
    },
  });
}
