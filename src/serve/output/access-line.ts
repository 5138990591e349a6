// Lines of access logs. `common` begins as the Common Log Format of NCSA and Apache, and `json` is an object a line.

export type AccessFormat = 'common' | 'json';
export const accessFormats: readonly AccessFormat[] = ['common', 'json'];

export interface AccessEntry {
  /** Time when the head of the request was read, in ms since 1970. */
  readonly timeMs: number;
  readonly name: string;
  /** Numbers of process and loop. */
  readonly process: number;
  readonly loop: number;
  /** Address of the client; `undefined`: it has left, or comes over a Unix socket. */
  readonly client: string | undefined;
  readonly method: string;
  /** The target of the request, with its query. */
  readonly path: string;
  readonly version: string;
  /** `undefined`: the client has left before the answer began. */
  readonly status: number | undefined;
  /** Bytes of the answer, for HTTP/1 with its head; `undefined`: unknown. */
  readonly bytes: number | undefined;
  /** From the head of the request to the end of the answer. */
  readonly durationMs: number;
  /** Time for which the connection waited until the loop took it; `undefined`: unknown. */
  readonly waitMs: number | undefined;
  /** True: the answer was not sent to its end. */
  readonly isAborted: boolean;
}

/** The status for a client that has left before the answer, as nginx has it. */
const leftStatus = 499;
const maxPath = 8192;
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Returns a line with its end. */
export function formatAccess(entry: AccessEntry, format: AccessFormat): string {
  const { name, process, loop, method, version, bytes, waitMs, isAborted } = entry;
  const client = entry.client?.replace(/^::ffff:(?=[\d.]+$)/, ''); // a socket of IPv6 takes IPv4, too
  const status = entry.status ?? leftStatus;
  const path = entry.path.slice(0, maxPath);
  const durationMs = Math.round(entry.durationMs * 1000) / 1000;
  if (format === 'json') {
    const time = new Date(entry.timeMs).toISOString();
    const request = { time, name, process, loop, client, method, path, version };
    const answer = { status, bytes, durationMs, waitMs, ...(isAborted && { aborted: true }) };
    return `${JSON.stringify({ ...request, ...answer })}\n`;
  }
  const request = escaped(`${method} ${path} HTTP/${version}`);
  return (
    `${client ?? '-'} - - [${commonTime(entry.timeMs)}] "${request}" ${status} ${bytes ?? '-'} ` +
    `${durationMs} ${process}.${loop} ${waitMs ?? '-'}\n`
  );
}

/** `29/Nov/2026:18:54:13 +0000` */
function commonTime(timeMs: number): string {
  const [date = '', time = ''] = new Date(timeMs).toISOString().split(/[T.]/);
  const [year, month, day] = date.split('-');
  return `${day}/${months[Number(month) - 1]}/${year}:${time} +0000`;
}

/** Escapes what would end the field or the line, as Apache does: clients choose the text. */
function escaped(text: string): string {
  if (!/["\\]|[^ -~]/.test(text)) return text;
  return text.replace(/["\\]|[^ -~]/gu, (character) =>
    character === '"' || character === '\\'
      ? `\\${character}`
      : [...Buffer.from(character)]
          .map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`)
          .join(''),
  );
}
