// Numbers that look random and are the same at every run.

/** A function that gives whole numbers from 0 to `limit - 1`; `seed` says which ones. */
export function random(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit); // the high bits: the low ones repeat soon
  };
}
