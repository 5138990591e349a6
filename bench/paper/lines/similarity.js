// What all of them compute, and none of them counts: the share of lines that two texts have in common.

export function similarity(a, b) {
  const lines = new Set(a.split('\n'));
  const others = b.split('\n');
  return others.filter((line) => lines.has(line)).length / others.length;
}
