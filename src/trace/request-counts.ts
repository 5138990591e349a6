// Requests that a command answers while it is traced. Nobody sees them from outside, so Node programs
// that the command starts count them: NODE_OPTIONS loads a file into each of their processes and threads
// (count-requests.cts), and each writes its count into a file of its own. Here the folder for those files
// is made and read. What drops its environment is not counted.

import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../internal/index.js';

/** What one thread has answered. */
export interface ThreadRequests {
  readonly pid: number;
  /** `undefined` where it could not write. */
  readonly count: number | undefined;
}

const counterPath = fileURLToPath(new URL('./count-requests.cjs', import.meta.url));

export class RequestCounts {
  /** What the command is to have in its environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly #folder: string;

  private constructor(folder: string, counter: string) {
    this.#folder = folder;
    this.env = {
      NODE_OPTIONS: withPreload(process.env['NODE_OPTIONS'] ?? '', counter),
      MANYCORE_TRACE_REQUESTS: folder,
    };
  }

  /** The reason, where there is no place for counts, or the program might not start with the counter. */
  static create(command: readonly string[], counter = counterPath): RequestCounts | string {
    try {
      if (isRestricted(command)) return 'the program says itself which files it may read';
      const hidden = process.getuid?.() === 0 && isHidden(realpathSync(counter));
      if (hidden) {
        return `${counter} may not be read by all users, and a program of another one would not start`;
      }
    } catch (error) {
      return `${messageOf(error)}; npm run build makes the counter`;
    }
    try {
      return new RequestCounts(mkdtempSync(join(tmpdir(), 'manycore-requests-')), counter);
    } catch (error) {
      return `${messageOf(error)}; name a folder in TMPDIR`;
    }
  }

  /** One for each thread that has answered something, until `close`. */
  read(): ThreadRequests[] {
    try {
      return readdirSync(this.#folder).map((name) => {
        const text = readFileSync(join(this.#folder, name), 'latin1').trim();
        const count = /^\d+$/.test(text) ? Number(text) : undefined;
        return { pid: Number.parseInt(name, 10), count };
      });
    } catch {
      return [{ pid: 0, count: undefined }]; // somebody has cleaned up: how many there were nobody knows
    }
  }

  /** What still runs counts no more. */
  close(): void {
    try {
      rmSync(this.#folder, { recursive: true, force: true });
    } catch {
      // A report is not lost because a folder has become read-only.
    }
  }
}

/**
 * NODE_OPTIONS that load a file, before all that stands there: an option at the end may lack its value. A
 * path with spaces or quotes is quoted as Node takes it apart.
 */
export function withPreload(options: string, path: string): string {
  const quoted = /[ "\\]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&')}"` : path;
  return `--require ${quoted} ${options}`.trim();
}

/** Node's permission model: a program ends when it may not read what it is to load. */
function isRestricted(command: readonly string[]): boolean {
  const words = [...command, ...(process.env['NODE_OPTIONS'] ?? '').split(/\s+/)];
  return words.some((word) => /^--(experimental-)?permission$/.test(word));
}

/** Whether some users cannot read a file. */
function isHidden(path: string): boolean {
  if ((statSync(path).mode & 0o004) === 0) return true;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return true;
    if (folder === dirname(folder)) return false;
  }
}
