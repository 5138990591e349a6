// Events for pages: one poll a second for all of them, and the tasks in workers of opened programs. Nothing
// is polled while no page is open.

import { messageOf, packageVersion } from '../../lib/index.js';
import { ProgramSampler } from '../sampler.js';
import { followTasks } from '../task-slices.js';
import type { ProgramView } from '../views/view-types.js';
import type { TasksEvent, ViewEvent } from './protocol.js';

export interface Page {
  /** The opened program; `undefined`: the list. */
  readonly pid: number | undefined;
  /** Sends an event with JSON data; a slow page may drop it. */
  readonly send: (event: 'view' | 'tasks' | 'problem', data: string) => void;
}

const pollMs = 1000;

export class Feed implements Disposable {
  readonly #pages = new Set<Page>();
  /** Functions that stop following, by `pid.thread`. */
  readonly #followed = new Map<string, () => void>();
  #sampler: ProgramSampler | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The last poll, for pages that are opened before the next one. */
  #programs: readonly ProgramView[] | undefined;

  /** Adds a page; returns the function that removes it. */
  add(page: Page): () => void {
    this.#pages.add(page);
    if (this.#sampler === undefined) this.#start();
    else if (this.#programs !== undefined) this.#sendView([page], this.#programs);
    this.#follow();
    return () => {
      this.#pages.delete(page);
      if (this.#pages.size === 0) this.#stop();
      else this.#follow();
    };
  }

  #start(): void {
    const sampler = new ProgramSampler();
    this.#sampler = sampler;
    const poll = async (): Promise<void> => {
      try {
        const programs = await sampler.sample();
        if (this.#sampler !== sampler) return;
        this.#programs = programs;
        this.#follow();
        this.#sendView(this.#pages, programs);
      } catch (error) {
        const text = JSON.stringify(messageOf(error));
        for (const page of this.#pages) page.send('problem', text);
      }
      if (this.#sampler === sampler) this.#timer = setTimeout(() => void poll(), pollMs);
    };
    void poll();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#sampler?.[Symbol.dispose]();
    this.#sampler = undefined;
    this.#programs = undefined;
    this.#follow();
  }

  /** Serializes each opened program once for all its pages. */
  #sendView(pages: Iterable<Page>, programs: readonly ProgramView[]): void {
    const lines = programs.map(({ pid, title, summary }) => ({ pid, title, summary }));
    const version = packageVersion();
    const texts = new Map<number | undefined, string>();
    for (const { pid, send } of pages) {
      let text = texts.get(pid);
      if (text === undefined) {
        const opened = programs.find((program) => program.pid === pid);
        text = JSON.stringify({ version, programs: lines, opened } satisfies ViewEvent);
        texts.set(pid, text);
      }
      send('view', text);
    }
  }

  /** Follows exactly the threads with pools of opened programs. */
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
          (slice) => this.#sendTasks(program, { pid, thread, slice }),
          () => this.#followed.delete(key),
        );
        this.#followed.set(key, stop);
      } catch {
        return; // programs cannot be found now: the next poll reports the cause, and a later one tries again
      }
    }
  }

  #sendTasks(program: number, event: TasksEvent): void {
    const text = JSON.stringify(event);
    for (const { pid, send } of this.#pages) if (pid === program) send('tasks', text);
  }

  [Symbol.dispose](): void {
    this.#pages.clear();
    this.#stop();
  }
}
