// Memory: a typed array of four times the caches, 256 MiB at least. One number of each cache line is read, so
// that cores wait for memory and share its bandwidth.
import { lastLevelCacheBytes } from '../../lib/machine.js';

const sliceBytes = 2 * 2 ** 20;
const sliceLength = sliceBytes / Float64Array.BYTES_PER_ELEMENT;
const leastItems = 512;
const sliceCount = Math.ceil(Math.max(256 * 2 ** 20, 4 * lastLevelCacheBytes()) / sliceBytes);
const mib = (bytes) => bytes / 2 ** 20;
const lineLength = 64 / Float64Array.BYTES_PER_ELEMENT;

export default {
  says: `slices of ${mib(sliceBytes)} MiB of an array of ${mib(sliceCount * sliceBytes)} MiB, one number read of each 64 bytes`,
  open(allocate) {
    const { buffer, byteOffset } = allocate(sliceCount * sliceBytes);
    // Slices are mapped in turn, so that the caches have lost each by the time it comes again.
    const items = Array.from({ length: Math.max(leastItems, sliceCount) }, (_, index) => {
      return new Float64Array(buffer, byteOffset + (index % sliceCount) * sliceBytes, sliceLength);
    });
    return { items, map: sumLines, fill };
  },
};

/** Writes all pages: unwritten memory is one page of zeros, which stays in the cache. */
function fill(items) {
  items.forEach((slice, index) => {
    slice.fill(1 + (index % 1000));
  });
}

function sumLines(slice) {
  let sum = 0;
  for (let at = 0; at < slice.length; at += lineLength) sum += slice[at];
  return sum;
}
