// Requests that a traced command answers. They are invisible from outside, so its Node programs count them.
// NODE_OPTIONS loads a file into each of their processes and threads (count-requests.cts), and each thread
// writes its count into a file of its own. This module creates and reads the folder of these files. A
// program that drops its environment is not counted.

import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../lib/index.js';

/** Requests answered by one thread. */
export interface ThreadRequests {
  readonly pid: number;
  /** `undefined`: the thread could not write. */
  readonly count: number | undefined;
}

const counterPath = fileURLToPath(new URL('./count-requests.cjs', import.meta.url));

export class RequestCounts {
  /** Environment variables for the command. */
  readonly env: Readonly<Record<string, string>>;
  readonly #folder: string;

  private constructor(folder: string, counter: string) {
    this.#folder = folder;
    this.env = {
      NODE_OPTIONS: withPreload(process.env['NODE_OPTIONS'] ?? '', counter),
      MANYCORE_TRACE_REQUESTS: folder,
    };
  }

  /** Returns the reason when the folder has no room, or the program might not start with the counter. */
  static create(command: readonly string[], counter = counterPath): RequestCounts | string {
    try {
      if (isRestricted(command)) return 'the program restricts the files that it may read';
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

  /** Returns one entry for each thread that has answered a request, until `close`. */
  read(): ThreadRequests[] {
    try {
      return readdirSync(this.#folder).map((name) => {
        const text = readFileSync(join(this.#folder, name), 'latin1').trim();
        const count = /^\d+$/.test(text) ? Number(text) : undefined;
        return { pid: Number.parseInt(name, 10), count };
      });
    } catch {
      return [{ pid: 0, count: undefined }]; // the folder was deleted: the number of threads is unknown
    }
  }

  /** Deletes the folder; programs that still run are no longer counted. */
  close(): void {
    try {
      rmSync(this.#folder, { recursive: true, force: true });
    } catch {
      // a read-only folder must not cost the report
    }
  }
}

/**
 * Returns NODE_OPTIONS that load a file before all existing ones: an option at the end may lack its value.
 * A path with spaces or quotes is quoted in Node's syntax.
 */
export function withPreload(options: string, path: string): string {
  const quoted = /[ "\\]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&')}"` : path;
  return `--require ${quoted} ${options}`.trim();
}

/** Returns true under Node's permission model: a program ends when it may not read the file. */
function isRestricted(command: readonly string[]): boolean {
  const words = [...command, ...(process.env['NODE_OPTIONS'] ?? '').split(/\s+/)];
  return words.some((word) => /^--(experimental-)?permission$/.test(word));
}

/** Returns true when some users cannot read the file. */
function isHidden(path: string): boolean {
  if ((statSync(path).mode & 0o004) === 0) return true;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return true;
    if (folder === dirname(folder)) return false;
  }
}
