// Arguments of the calls.

/** 127 bytes as JSON while `id` has one digit: two levels, text, a float, an array and a boolean. */
export function makeOrder(id) {
  return {
    id,
    name: 'lamp',
    price: 42.5,
    tags: ['new', 'home', 'gift'],
    address: { city: 'Utrecht', street: 'Oude 15' },
    isPaid: false,
  };
}

/** Numbers in `[0, 1)`, the same for the same seed (mulberry32). */
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
