// Pseudorandom numbers, the same at every run.

/** Returns a function that returns whole numbers from 0 to `limit - 1`; `seed` selects the sequence. */
export function random(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit); // the high bits: the low ones repeat soon
  };
}
