// Stats as people read them, in the terminal and on the page: short, so that they stand in a column.
// What is not known is a dash.

const unknown = '-';

/** Without a unit: the column says it. */
export function countText(value: number | undefined): string {
  if (value === undefined) return unknown;
  if (value < 9.95 && !Number.isInteger(value)) return value.toFixed(1);
  if (value < 10_000) return String(Math.round(value));
  if (value < 9.95e6) return scaled(value / 1e3, 'k');
  return scaled(value / 1e6, 'M');
}

/** `share` is 1 for one whole core, or for all of the time. */
export function percentText(share: number | undefined): string {
  return share === undefined ? unknown : `${Math.round(100 * share)}%`;
}

export function bytesText(bytes: number | undefined): string {
  if (bytes === undefined) return unknown;
  const mib = bytes / 2 ** 20;
  return mib < 1000 ? scaled(mib, 'M') : scaled(mib / 1024, 'G');
}

export function msText(ms: number | undefined): string {
  if (ms === undefined) return unknown;
  if (ms === 0) return '0ms';
  if (ms < 0.0995) return `${Math.round(1000 * ms)}us`;
  if (ms < 9.95) return `${ms.toFixed(1)}ms`;
  if (ms < 10_000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds}s` : `${Math.round(seconds / 60)}min`;
}

function scaled(value: number, unit: string): string {
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/** What a program is called where there is little room: the end of its path. */
export function shortTitle(title: string): string {
  return title.split(/[/\\]/).at(-1) || title || '?';
}
