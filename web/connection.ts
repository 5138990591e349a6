// The way to the dashboard's server: events as long as it is there, and a new try each second when it is not.
// A page that hears nothing for a while says so, whatever the reason is.

import {
  parseProblem,
  parseTasks,
  parseView,
  type TasksEvent,
  type ViewEvent,
} from '../src/observe/dashboard/protocol.js';

/** `refused`: the server is there, and does not know our token. */
export type ConnectionState = 'connecting' | 'live' | 'stale' | 'refused';

export interface Listener {
  readonly onView: (view: ViewEvent) => void;
  readonly onTasks: (tasks: TasksEvent) => void;
  /** What the server cannot do, in its words. */
  readonly onProblem: (text: string) => void;
  /** `silentMs`: since the last sign of life. */
  readonly onState: (state: ConnectionState, silentMs: number) => void;
}

const retryMs = 1000;
/** A look comes each second, and may wait a second for a thread that does not answer. */
const staleMs = 4000;
/** A way that is dead may never say so, as after a machine has slept. */
const maxStalledMs = 10_000;

export class Connection {
  readonly #listener: Listener;
  #source: EventSource | undefined;
  #pid: number | undefined;
  #lastMs = performance.now();
  #state: ConnectionState = 'connecting';
  #retry: ReturnType<typeof setTimeout> | undefined;
  #triedMs = 0;
  /** Of manycore, as the server told first: it has sent this page. */
  #version: string | undefined;

  constructor(listener: Listener) {
    this.#listener = listener;
    setInterval(() => this.#watch(), retryMs);
  }

  /** Shows this program from now on, or none. */
  open(pid: number | undefined): void {
    this.#pid = pid;
    this.#connect();
  }

  #connect(): void {
    clearTimeout(this.#retry);
    this.#triedMs = performance.now();
    this.#source?.close();
    const source = new EventSource(this.#pid === undefined ? 'events' : `events?pid=${this.#pid}`);
    this.#source = source;
    source.addEventListener('view', ({ data }) => {
      const view = parseView(data);
      this.#noteAlive();
      this.#version ??= view.version;
      if (view.version === this.#version) this.#listener.onView(view);
      else location.reload(); // the server is another: its page is, too
    });
    source.addEventListener('tasks', ({ data }) => this.#listener.onTasks(parseTasks(data)));
    source.addEventListener('problem', ({ data }) => {
      this.#noteAlive();
      this.#listener.onProblem(parseProblem(data));
    });
    source.addEventListener('error', () => {
      source.close();
      void this.#noteLost(source);
    });
  }

  /** Events do not tell why there are none. */
  async #noteLost(source: EventSource): Promise<void> {
    const status = await fetch('./', {
      method: 'HEAD',
      signal: AbortSignal.timeout(maxStalledMs),
    }).then(
      (response) => response.status,
      () => undefined,
    );
    if (this.#source !== source) return; // it was opened anew meanwhile
    this.#enter(status === 401 ? 'refused' : 'stale');
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#connect(), retryMs);
  }

  #noteAlive(): void {
    this.#lastMs = performance.now();
    this.#enter('live');
  }

  #watch(): void {
    const nowMs = performance.now();
    const silentMs = nowMs - this.#lastMs;
    if (Math.min(silentMs, nowMs - this.#triedMs) > maxStalledMs) this.#connect();
    if (this.#state === 'live' && silentMs > staleMs) this.#enter('stale');
    else if (this.#state !== 'live') this.#listener.onState(this.#state, silentMs);
  }

  #enter(state: ConnectionState): void {
    this.#state = state;
    this.#listener.onState(state, performance.now() - this.#lastMs);
  }
}
