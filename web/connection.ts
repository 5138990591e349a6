// Connection to the dashboard's server: receives events, and tries to reconnect each second. A page that
// receives nothing for a while shows that, whatever the cause.

import {
  parseProblem,
  parseTasks,
  parseView,
  type TasksEvent,
  type ViewEvent,
} from '../src/observe/dashboard/protocol.js';

/** `refused`: the server runs, and rejects our token. */
export type ConnectionState = 'connecting' | 'live' | 'stale' | 'refused';

export interface Listener {
  readonly onView: (view: ViewEvent) => void;
  readonly onTasks: (tasks: TasksEvent) => void;
  /** Text of a failure in the server. */
  readonly onProblem: (text: string) => void;
  /** `silentMs`: time since the last event. */
  readonly onState: (state: ConnectionState, silentMs: number) => void;
}

const retryMs = 1000;
/** Time without events before the page shows it: a poll takes a second, and one more for a silent thread. */
const staleMs = 4000;
/**
 * Time without events before a reconnect: a dead connection may never report an error, as after a suspend.
 */
const maxStalledMs = 10_000;

export class Connection {
  readonly #listener: Listener;
  #source: EventSource | undefined;
  #pid: number | undefined;
  #lastMs = performance.now();
  #state: ConnectionState = 'connecting';
  #retry: ReturnType<typeof setTimeout> | undefined;
  #triedMs = 0;
  /** Version of manycore in the first event: that of the server that sent this page. */
  #version: string | undefined;

  constructor(listener: Listener) {
    this.#listener = listener;
    setInterval(() => this.#watch(), retryMs);
  }

  /** Opens this program, or the list. */
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
      else location.reload(); // another version of the server has another page
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

  /** Finds the cause of an error, which an EventSource does not report. */
  async #noteLost(source: EventSource): Promise<void> {
    const status = await fetch('./', {
      method: 'HEAD',
      signal: AbortSignal.timeout(maxStalledMs),
    }).then(
      (response) => response.status,
      () => undefined,
    );
    if (this.#source !== source) return; // reopened meanwhile
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
