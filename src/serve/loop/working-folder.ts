// `process.chdir()` in a loop's thread, which Node has in main threads only: the main thread of the process does it,
// for all of its loops. They run the same program, so they change to the same folder.

import { resolve } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import type { FromLoop, LoopMessage } from '../protocol.js';
import type { Link } from '../shared/link.js';
import { receiveUntil } from './in-call.js';

type FolderChanged = Extract<LoopMessage, { type: 'folderChanged' }>;

export class WorkingFolder {
  readonly #up: Link<FromLoop>;
  #lastId = 0;
  #answer: FolderChanged | undefined;

  constructor(up: Link<FromLoop>) {
    this.#up = up;
  }

  /** Called once, before the program. */
  takeOver(): void {
    if (!isMainThread) Reflect.set(process, 'chdir', this.#change);
  }

  receive(message: FolderChanged): void {
    if (message.id === this.#lastId) this.#answer = message;
  }

  readonly #change = (folder: string): void => {
    const whole = resolve(folder); // throws Node's error for other types
    this.#lastId += 1;
    this.#answer = undefined;
    this.#up.post({ id: this.#lastId, body: { type: 'changeFolder', folder: whole } });
    receiveUntil(this.#up, () => this.#answer !== undefined);
    const { error } = this.#answer ?? { error: unanswered };
    if (error === undefined) return;
    const { message, code } = error;
    throw Object.assign(new Error(message), {
      code,
      syscall: 'chdir',
      path: process.cwd(),
      dest: folder,
    });
  };
}

const unanswered = { message: 'the process of this loop has not changed its folder', code: 'EIO' };
