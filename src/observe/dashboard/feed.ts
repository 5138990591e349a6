// What pages are told: one look a second for all of them, and what runs in the workers of those programs that
// somebody has opened. Nobody is asked while no page is open.

import { messageOf, packageVersion } from '../../internal/index.js';
import { ProgramSampler } from '../sampler.js';
import { followTasks } from '../tasks.js';
import type { ProgramView } from '../view-types.js';
import type { TasksEvent, ViewEvent } from './protocol.js';

export interface Page {
  /** The program that it shows. */
  readonly pid: number | undefined;
  /** An event, with its data as JSON; a page that does not keep up may drop it. */
  readonly send: (event: 'view' | 'tasks' | 'problem', data: string) => void;
}

const pollMs = 1000;

export class Feed implements Disposable {
  readonly #pages = new Set<Page>();
  /** What ends each, by `pid.thread`. */
  readonly #followed = new Map<string, () => void>();
  #sampler: ProgramSampler | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The last look, for pages that come between two. */
  #programs: readonly ProgramView[] | undefined;

  /** Returns what takes it off again. */
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

  /** Each opened program is put into words once, however many pages show it. */
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
          (slice) => this.#sendTasks(program, { pid, thread, slice }),
          () => this.#followed.delete(key),
        );
        this.#followed.set(key, stop);
      } catch {
        return; // programs cannot be found now: the next poll says why, and the one after that tries again
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
