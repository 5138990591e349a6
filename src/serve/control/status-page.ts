// The status as an HTML page: without a script, so that it works in every browser and under every policy; it
// reloads every two seconds.

import { escaped } from '../../http-apps/index.js';
import type { BoundAddress } from '../protocol.js';
import type { ServerStatus } from './control.js';
import type { LoopStatus } from './status.js';

/** Formats an address for people. */
export function addressText(address: BoundAddress): string {
  if (typeof address === 'string') return address;
  const { address: host, port, family } = address;
  return `${family === 'IPv6' ? `[${host}]` : host}:${port}`;
}

/** Parses addresses, also from another version of manycore; invalid ones are omitted. */
export function addressesIn(value: unknown): BoundAddress[] {
  if (!Array.isArray(value)) return [];
  return value.filter((each) => {
    const { address, port, family }: { address?: unknown; port?: unknown; family?: unknown } =
      Object(each);
    const isPlace = typeof address === 'string' && typeof port === 'number';
    return typeof each === 'string' || (isPlace && (family === 'IPv4' || family === 'IPv6'));
  });
}

interface Column {
  readonly head: string;
  readonly text: (line: LoopStatus) => string;
  readonly isText?: boolean;
}

/** Columns of the page and of `manycore status`: first those that show trouble, because a phone has room for four. */
export const statusColumns: readonly Column[] = [
  { head: 'pid', text: ({ pid }) => String(pid ?? '') },
  { head: 'loop', text: ({ loop }) => String(loop) },
  { head: 'state', text: stateText, isText: true },
  { head: 'busy', text: ({ utilization }) => `${Math.round(100 * utilization)} %` },
  { head: 'lag', text: ({ lagMs }) => `${lagMs} ms` },
  { head: 'open', text: ({ openConnections }) => String(openConnections) },
  { head: 'in flight', text: ({ requestsInFlight }) => String(requestsInFlight) },
  { head: 'requests', text: ({ requests }) => String(requests) },
  { head: 'connections', text: ({ connections }) => String(connections) },
  { head: '503', text: ({ turnedAway, loop }) => (loop === 0 ? String(turnedAway) : '') },
  { head: 'out, in', text: ({ takenAway, takenOver }) => `${takenAway}, ${takenOver}` },
  { head: 'written', text: ({ bytesWritten }) => sizeText(bytesWritten) },
  { head: 'memory', text: ({ rssBytes }) => sizeText(rssBytes) },
  { head: 'age', text: ({ ageMs }) => durationText(ageMs) },
  { head: 'gen', text: ({ generation }) => String(generation) },
  { head: 'last exit', text: ({ lastExit = '' }) => lastExit, isText: true },
];

/** Minimum block time to show; long callbacks may take up to a second. In ms. */
const worthSayingMs = 1000;

function stateText({ state, blockedMs }: LoopStatus): string {
  return blockedMs < worthSayingMs ? state : `blocked ${durationText(blockedMs)}`;
}

export function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  const hours = Math.round(minutes / 60);
  if (minutes < 120) return `${minutes} min`;
  return hours < 72 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}

export function sizeText(count: number): string {
  const mib = count / 2 ** 20;
  if (mib < 1024) return `${mib.toFixed(1)} MiB`;
  const gib = mib / 1024;
  return gib < 1024 ? `${gib.toFixed(1)} GiB` : `${(gib / 1024).toFixed(1)} TiB`;
}

const style = `
  :root { color-scheme: light dark; font: 14px/1.4 system-ui, sans-serif; }
  body { margin: 1rem; overflow-wrap: anywhere; }
  h1 { font-size: 1.2rem; }
  /* A shadow at the right edge while columns are out of sight. */
  .wide {
    overflow-x: auto;
    background: linear-gradient(Canvas, Canvas) right / 1.5rem 100% no-repeat local,
      linear-gradient(to left, #8886, #8880) right / 1.5rem 100% no-repeat scroll;
  }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
  th, td { padding: 0.25rem 0.3rem; border-bottom: 1px solid #8884; text-align: right; }
  th { white-space: normal; overflow-wrap: normal; vertical-align: bottom; }
  th:first-child, td:first-child { padding-left: 0; }
  .text { text-align: left; }
  td:last-child { min-width: 8.5rem; white-space: normal; }
  .odd .text:not(:last-child) { font-weight: bold; }
`;

/** The whole page, as HTML. */
export function statusPage({ pid, app, addresses, loops }: ServerStatus): string {
  const classOf = ({ isText }: Column): string => (isText ? ' class="text"' : '');
  const heads = statusColumns.map(
    (column) => `<th scope="col"${classOf(column)}>${escaped(column.head)}</th>`,
  );
  const lines = loops.map((line) => {
    const cells = statusColumns.map(
      (column) => `<td${classOf(column)}>${escaped(column.text(line))}</td>`,
    );
    const isOdd = stateText(line) !== 'ready';
    return `<tr${isOdd ? ' class="odd"' : ''}>${cells.join('')}</tr>`;
  });
  const ready = loops.filter(({ state }) => state === 'ready').length;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="2">
<title>manycore: ${escaped(app)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escaped(app)}</h1>
<p>Process ${pid} serves it at ${escaped(addresses.map(addressText).join(', '))} from ${ready}
event loop${ready === 1 ? '' : 's'}.</p>
<div class="wide" tabindex="0">
<table>
<thead><tr>${heads.join('')}</tr></thead>
<tbody>
${lines.join('\n')}
</tbody>
</table>
</div>
</body>
</html>
`;
}
