// The common computation, counted for no model: the share of lines that two texts have in common.

export function similarity(a, b) {
  const lines = new Set(a.split('\n'));
  const others = b.split('\n');
  return others.filter((line) => lines.has(line)).length / others.length;
}
