// The order of the measurements. Contenders take turns, so that a machine that slows down half-way
// slows everybody: A B C A B C, never A A B B C C.

export interface Turn<T> {
  readonly round: number;
  readonly run: T;
}

export function interleave<T>(runs: readonly T[], rounds: number): Turn<T>[] {
  const turns: Turn<T>[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const run of runs) turns.push({ round, run });
  }
  return turns;
}
