// Turns of contenders that run beside each other: each window begins with another one. Changes of the
// machine's speed over time then affect all of them.

/** Pairs of index and contender, in the order of this window. */
export function turnsOf(contenders, window) {
  return contenders.map((_, turn) => {
    const at = (window + turn) % contenders.length;
    return [at, contenders[at]];
  });
}
