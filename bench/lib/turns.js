// Contenders that run beside each other take turns, and in each window another one begins: what the machine
// gives less or more of with time falls on all of them.

/** Pairs of index and contender, in the order of this window. */
export function turnsOf(contenders, window) {
  return contenders.map((_, turn) => {
    const at = (window + turn) % contenders.length;
    return [at, contenders[at]];
  });
}
