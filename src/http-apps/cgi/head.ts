// The head of a CGI program's output: header lines up to an empty one. RFC 3875, section 6; pure.

/** Head of the response. */
export interface CgiHead {
  readonly status: number;
  /** Reason of the status; `''`: the usual one. */
  readonly reason: string;
  /** Path and query of this server whose response is to be sent instead. RFC 3875, 6.2.2. */
  readonly redirect: string | undefined;
  /** Length of the body, if the program announces it. */
  readonly length: number | undefined;
  /** Pairs, in order. */
  readonly headers: readonly (readonly [string, string])[];
}

/** Error in the output of a program. */
export class CgiOutputError extends Error {}

const maxBytes = 64 * 1024;
const newline = 10;
const carriageReturn = 13;

/** Collects output until the head is complete. */
export class CgiHeadReader {
  #bytes = Buffer.alloc(0);

  /** Returns the head and the bytes behind it, once the head is complete. Throws `CgiOutputError`. */
  push(chunk: Buffer): { head: CgiHead; rest: Buffer } | undefined {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    const end = endOfHead(this.#bytes);
    if (end !== undefined) {
      const text = this.#bytes.toString('latin1', 0, end.head);
      return { head: parse(text), rest: this.#bytes.subarray(end.body) };
    }
    if (this.#bytes.length > maxBytes) {
      throw new CgiOutputError(`no empty line in the first ${maxBytes} bytes of its output`);
    }
    return undefined;
  }
}

/** Lines may end as on Unix or as in HTTP. */
function endOfHead(bytes: Buffer): { head: number; body: number } | undefined {
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) {
    if (bytes[at + 1] === newline) return { head: at, body: at + 2 };
    if (bytes[at + 1] === carriageReturn && bytes[at + 2] === newline) {
      return { head: at, body: at + 3 };
    }
  }
  return undefined;
}

/** Headers of the connection, which a program may not set. */
const ofConnection: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const token = /^[!#$%&'*+.^_`|~\w-]+$/;

function parse(text: string): CgiHead {
  const headers: [string, string][] = [];
  let status: Status | undefined;
  let length: number | undefined;
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon));
    if (!token.test(name)) throw new CgiOutputError(`${JSON.stringify(line)} is no header line`);
    const value = line.slice(colon + 1).trim();
    const lower = name.toLowerCase();
    if (lower === 'status') status = statusOf(value);
    else if (lower === 'content-length') length = lengthOf(value, length);
    else if (!ofConnection.has(lower)) headers.push([name, value]);
  }
  const location = headers.find(([name]) => name.toLowerCase() === 'location')?.[1];
  // With a fragment only the client can follow it.
  const isLocal = status === undefined && location !== undefined && localForm.test(location);
  const otherwise = { status: location === undefined ? 200 : 302, reason: '' };
  return { ...(status ?? otherwise), redirect: isLocal ? location : undefined, length, headers };
}

/** A path and query in ASCII. */
const localForm = /^\/[!"$-~]*$/;

function lengthOf(value: string, before: number | undefined): number {
  const length = Number(value);
  const isSound = /^\d{1,15}$/.test(value) && (before === undefined || before === length);
  if (isSound) return length;
  throw new CgiOutputError(`${JSON.stringify(value)} is no length`);
}

type Status = Pick<CgiHead, 'status' | 'reason'>;

function statusOf(value: string): Status {
  const [, code, reason = ''] = /^(\d{3})(?:[ \t]+([\t -~\x80-\xff]*))?$/.exec(value) ?? [];
  const status = Number(code);
  if (status >= 200 && status <= 599) return { status, reason };
  throw new CgiOutputError(`${JSON.stringify(value)} is no status`);
}
