// The few SVG elements of the plots, as text. Scales and paths are d3's.

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
  return element('text', { x, y, fill: ink, ...attributes }, escaped(content));
}

/** Escapes text for markup. */
export function escaped(content: string): string {
  return content.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
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

/** The whole picture: a light card, so that it reads the same on any page. */
export function drawCard(width: number, height: number, content: readonly string[]): string {
  const sheet = { x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8 };
  const background = element('rect', { ...sheet, fill: '#fff', stroke: '#d0d7de' });
  const card = {
    xmlns: 'http://www.w3.org/2000/svg',
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    'font-family': 'system-ui, sans-serif',
    'font-size': 12.5,
  };
  return `${element('svg', card, `\n${[background, ...content].join('\n')}\n`)}\n`;
}
