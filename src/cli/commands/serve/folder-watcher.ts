// Watches the folders of a program for `--reload-on-change`. Changes while the program is loaded count afterwards.
// A file that changes in each of several loads in a row is written by the program itself: it would reload for
// ever, so it is left out from then on, with one line.

import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { messageOf } from '../../../lib/index.js';

/** Delay after the last change: editors and compilers write several times. */
const quietMs = 200;
/** Paths that programs write, or package managers install while they run. */
const unwatched = /(^|[\\/])(node_modules|\.git)([\\/]|$)|\.(log|pid|sock)$|~$/;
/** Loads in a row that change a file, after which it is left out. */
const maxLoads = 3;

export class FolderWatcher {
  readonly #onQuiet: () => void;
  readonly #folders = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** Number of loads that run: each reload of several apps is one. */
  #loads = 0;
  #isStale = false;
  /** Files that changed in the loads of this moment. */
  readonly #inLoad = new Set<string>();
  /** Loads in a row that changed a file. */
  readonly #counts = new Map<string, number>();
  readonly #leftOut = new Set<string>();
  readonly #watchers: FSWatcher[] = [];

  /** `onQuiet`: files changed, and none has for a moment; not called during a load. */
  constructor(onQuiet: () => void) {
    this.#onQuiet = onQuiet;
  }

  /** Watches a folder, once, with all below. */
  add(folder: string): void {
    if (this.#folders.has(folder)) return;
    this.#folders.add(folder);
    const watcher = watch(folder, { recursive: true, persistent: false }, (_event, file) => {
      if (file === null) this.#note(folder);
      else if (!unwatched.test(file)) this.#note(join(folder, file));
    });
    watcher.on('error', (error) => {
      console.error(`manycore: ${folder} is not watched any more: ${messageOf(error)}`);
    });
    this.#watchers.push(watcher);
  }

  /** Watches a file, also one that replaces it. Throws where its folder is gone. */
  addFile(path: string): void {
    const watcher = watch(dirname(path), { persistent: false }, (_event, file) => {
      if (file === basename(path)) this.#note(path);
    });
    watcher.on('error', (error) => {
      console.error(`manycore: ${path} is not watched any more: ${messageOf(error)}`);
    });
    this.#watchers.push(watcher);
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
    clearTimeout(this.#timer);
  }

  beginLoad(): void {
    this.#loads += 1;
  }

  endLoad(): void {
    this.#loads -= 1;
    if (this.#loads > 0) return;
    for (const file of this.#counts.keys()) {
      if (!this.#inLoad.has(file)) this.#counts.delete(file);
    }
    for (const file of this.#inLoad) this.#count(file);
    this.#inLoad.clear();
    if (!this.#isStale) return;
    this.#isStale = false;
    this.#wait();
  }

  #count(file: string): void {
    const count = (this.#counts.get(file) ?? 0) + 1;
    this.#counts.set(file, count);
    if (count < maxLoads) return;
    this.#leftOut.add(file);
    this.#counts.delete(file);
    console.error(
      `manycore: ${file} changes whenever the program starts, so its changes reload nothing any more; ` +
        'write it to another folder, or restart after a change of it',
    );
  }

  #note(file: string): void {
    if (this.#leftOut.has(file)) return;
    if (this.#loads > 0) {
      this.#inLoad.add(file);
      this.#isStale = true;
    } else this.#wait();
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onQuiet, quietMs);
  }
}
