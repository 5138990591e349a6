// Quoting for a POSIX shell: each word is inserted so that the shell takes it literally, whatever it
// contains, also inside existing quotes of the line (POSIX.1-2017, XCU 2.2).

type Quotes = '' | "'" | '"';

/** `line` with `{name}` replaced by `values[name]`; any other braces stay. */
export function filledLine(line: string, values: Readonly<Record<string, string>>): string {
  let filled = '';
  let quotes: Quotes = '';
  for (let at = 0; at < line.length; ) {
    const name = /^\{(\w+)\}/.exec(line.slice(at))?.[1] ?? '';
    const value = values[name];
    if (value !== undefined) {
      filled += quoted(value, quotes);
      at += name.length + 2;
      continue;
    }
    const char = line[at] ?? '';
    const isEscape = char === '\\' && quotes !== "'";
    const taken = isEscape ? line.slice(at, at + 2) : char;
    if (!isEscape) quotes = quotesAfter(quotes, char);
    filled += taken;
    at += taken.length;
  }
  return filled;
}

function quotesAfter(quotes: Quotes, char: string): Quotes {
  if (char !== "'" && char !== '"') return quotes;
  if (quotes === '') return char;
  return quotes === char ? '' : quotes;
}

function quoted(value: string, within: Quotes): string {
  if (within === '"') return value.replace(/["$\\`]/g, '\\$&');
  const inside = value.replaceAll("'", "'\\''");
  if (within === "'") return inside;
  return /^[\w.,:/@%+=-]+$/.test(value) ? value : `'${inside}'`;
}
