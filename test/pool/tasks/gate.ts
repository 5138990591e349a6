// Lets a test decide when a task in a worker goes on, over any channel: a file that the task waits for.

import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { waitFor } from '../../support/index.js';

export class Gate {
  readonly folder: string;

  constructor(t: TestContext) {
    this.folder = mkdtempSync(join(tmpdir(), 'manycore-gate-'));
    t.after(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Returns the file with which a task marks that it runs. Each name is one file. */
  mark(name: string): string {
    return join(this.folder, `mark-${name}`);
  }

  get file(): string {
    return join(this.folder, 'open');
  }

  open(): void {
    writeFileSync(this.file, '');
  }

  /** Names that were marked so far, sorted. */
  get marks(): string[] {
    return readdirSync(this.folder)
      .filter((name) => name.startsWith('mark-'))
      .map((name) => name.slice('mark-'.length))
      .sort();
  }

  /** Waits until a task has marked this name. */
  async reached(name: string): Promise<void> {
    await waitFor(() => existsSync(this.mark(name)), 60_000, `a task marks ${name}`);
  }
}
