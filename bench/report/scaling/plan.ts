// Which numbers of workers are measured, and how far the fitted curves are drawn.

/**
 * Every number up to eight; from there on powers of two and their halves more (12, 24, 48 …), so that
 * a large machine takes no longer than some fifteen sizes do; always `cores` itself.
 */
export function workerCounts(cores: number): number[] {
  if (cores <= 8) return Array.from({ length: cores }, (_, index) => index + 1);
  const counts = [1, 2, 4];
  for (let power = 8; power < cores; power *= 2) counts.push(power, power * 1.5);
  return [...counts.filter((count) => count < cores), cores];
}

/** The numbers of workers that the fits are asked about: doublings of `measured`, to 16 or fourfold. */
export function extrapolatedCounts(measured: number): number[] {
  const reach = Math.max(16, 4 * measured);
  const counts: number[] = [];
  for (let count = 2 * measured; count <= reach; count *= 2) counts.push(count);
  return counts;
}
