// Numbers of workers that are measured, and the range in which the fitted curves are drawn.

/**
 * Returns every number up to eight, then powers of two and their halves more (12, 24, 48 …), and always
 * `cores` itself. So a large machine needs only some fifteen sizes.
 */
export function workerCounts(cores: number): number[] {
  if (cores <= 8) return Array.from({ length: cores }, (_, index) => index + 1);
  const counts = [1, 2, 4];
  for (let power = 8; power < cores; power *= 2) counts.push(power, power * 1.5);
  return [...counts.filter((count) => count < cores), cores];
}

/** Returns the numbers of workers for extrapolation: doublings of `measured`, to 16 or fourfold. */
export function extrapolatedCounts(measured: number): number[] {
  const reach = Math.max(16, 4 * measured);
  const counts: number[] = [];
  for (let count = 2 * measured; count <= reach; count *= 2) counts.push(count);
  return counts;
}
