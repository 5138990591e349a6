// The few SVG elements that the plots are made of, as text. Scales and paths are d3's.

export type Attributes = Readonly<Record<string, string | number>>;

export const [ink, faint] = ['#1d2530', '#5c6773'];

/** One element; numbers to a tenth of a pixel. `content` is markup already. */
export function element(name: string, attributes: Attributes, content = ''): string {
  const written = Object.entries(attributes).map(([key, value]) => {
    return ` ${key}="${typeof value === 'number' ? Math.round(value * 10) / 10 : value}"`;
  });
  return `<${name}${written.join('')}>${content}</${name}>`;
}

export function text(x: number, y: number, content: string, attributes: Attributes = {}): string {
  const escaped = content.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return element('text', { x, y, fill: ink, ...attributes }, escaped);
}

/** A line from [x, y] to [x, y]. */
export function rule(
  [x1, y1]: readonly [number, number],
  [x2, y2]: readonly [number, number],
  attributes: Attributes,
): string {
  return element('line', { x1, y1, x2, y2, ...attributes });
}

/** `content` in lines of at most `most` characters, cut between words. */
export function wrap(content: string, most: number): string[] {
  const lines: string[] = [];
  for (const word of content.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`;
    if (lines.length === 0 || longer.length > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
