// Formats numbers for people, in the terminal and on the page: short texts that fit a column. A missing value
// is a dash.

const unknown = '-';

/** Formats a count without a unit, which stands in the head of its column. */
export function countText(value: number | undefined): string {
  if (value === undefined) return unknown;
  if (value < 9.95 && !Number.isInteger(value)) return value.toFixed(1);
  if (value < 10_000) return String(Math.round(value));
  if (value < 9.95e6) return scaled(value / 1e3, 'k');
  return scaled(value / 1e6, 'M');
}

/** Formats a share: 1 is one whole core, or all of the time. */
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
  if (ms < 0.9995) return `${Math.round(1000 * ms)}µs`;
  if (ms < 9.95) return `${ms.toFixed(1)}ms`;
  if (ms < 10_000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds}s` : `${Math.round(seconds / 60)}min`;
}

function scaled(value: number, unit: string): string {
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/** Short name of a program: the last part of its path. */
export function shortTitle(title: string): string {
  return title.split(/[/\\]/).at(-1) || title || '?';
}
