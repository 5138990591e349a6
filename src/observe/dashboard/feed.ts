// What pages are told: one look a second for all of them, and what runs in the workers of those programs that
// somebody has opened. Nobody is asked while no page is open.

import { messageOf, packageVersion } from '../../internal/index.js';
import { followTasks } from '../tasks.js';
import type { ProgramView } from '../view-types.js';
import { Viewer } from '../viewer.js';
import type { TasksEvent, ViewEvent } from './protocol.js';

export interface Page {
  /** The program that it shows. */
  readonly pid: number | undefined;
  /** An event, with its data as JSON; a page that does not keep up may drop it. */
  readonly tell: (event: 'view' | 'tasks' | 'problem', data: string) => void;
}

const lookMs = 1000;

export class Feed implements Disposable {
  readonly #pages = new Set<Page>();
  /** What ends each, by `pid.thread`. */
  readonly #followed = new Map<string, () => void>();
  #viewer: Viewer | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The last look, for pages that come between two. */
  #programs: readonly ProgramView[] | undefined;

  /** Returns what takes it off again. */
  add(page: Page): () => void {
    this.#pages.add(page);
    if (this.#viewer === undefined) this.#start();
    else if (this.#programs !== undefined) this.#tellView([page], this.#programs);
    this.#follow();
    return () => {
      this.#pages.delete(page);
      if (this.#pages.size === 0) this.#stop();
      else this.#follow();
    };
  }

  #start(): void {
    const viewer = new Viewer();
    this.#viewer = viewer;
    const look = async (): Promise<void> => {
      try {
        const programs = await viewer.look();
        if (this.#viewer !== viewer) return;
        this.#programs = programs;
        this.#follow();
        this.#tellView(this.#pages, programs);
      } catch (error) {
        const text = JSON.stringify(messageOf(error));
        for (const page of this.#pages) page.tell('problem', text);
      }
      if (this.#viewer === viewer) this.#timer = setTimeout(() => void look(), lookMs);
    };
    void look();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#viewer?.[Symbol.dispose]();
    this.#viewer = undefined;
    this.#programs = undefined;
    this.#follow();
  }

  /** Each opened program is put into words once, however many pages show it. */
  #tellView(pages: Iterable<Page>, programs: readonly ProgramView[]): void {
    const lines = programs.map(({ pid, title, summary }) => ({ pid, title, summary }));
    const version = packageVersion();
    const texts = new Map<number | undefined, string>();
    for (const { pid, tell } of pages) {
      let text = texts.get(pid);
      if (text === undefined) {
        const opened = programs.find((program) => program.pid === pid);
        text = JSON.stringify({ version, programs: lines, opened } satisfies ViewEvent);
        texts.set(pid, text);
      }
      tell('view', text);
    }
  }

  /** Exactly the threads with pools of programs that are opened. */
  #follow(): void {
    const opened = new Set([...this.#pages].map(({ pid }) => pid));
    const wanted = (this.#programs ?? [])
      .filter(({ pid }) => opened.has(pid))
      .flatMap(({ pid: program, pools }) =>
        pools.map(({ pid, thread }) => ({ key: `${pid}.${thread}`, program, pid, thread })),
      );
    const keys = new Set(wanted.map(({ key }) => key));
    for (const [key, stop] of this.#followed) {
      if (keys.has(key)) continue;
      this.#followed.delete(key);
      stop();
    }
    for (const { key, program, pid, thread } of wanted) {
      if (this.#followed.has(key)) continue;
      try {
        const stop = followTasks(
          { pid, thread },
          (slice) => this.#tellTasks(program, { pid, thread, slice }),
          () => this.#followed.delete(key),
        );
        this.#followed.set(key, stop);
      } catch {
        return; // programs cannot be found now: the next look says why, and the one after that tries again
      }
    }
  }

  #tellTasks(program: number, event: TasksEvent): void {
    const text = JSON.stringify(event);
    for (const { pid, tell } of this.#pages) if (pid === program) tell('tasks', text);
  }

  [Symbol.dispose](): void {
    this.#pages.clear();
    this.#stop();
  }
}
