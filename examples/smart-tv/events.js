// Live data for the pages, by server-sent events. Without a viewer nothing is made or sent.

// Answers are gathered for this long: pages draw smoothly, and a press does not cost a write.
const flushEveryMs = 200;

export class Events {
  #watchers = new Set();
  #samples = [];
  #flusher;
  #onWatchers;

  /** `onWatchers(count)` is called when a page comes or goes. */
  constructor(onWatchers) {
    this.#onWatchers = onWatchers;
  }

  get watcherCount() {
    return this.#watchers.size;
  }

  /** Keeps `answer` open and sends it `hello`, a list of [name, data], first. */
  watch(answer, hello) {
    answer.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    for (const [name, data] of hello) answer.write(format(name, data));
    this.#watchers.add(answer);
    answer.on('close', () => {
      this.#watchers.delete(answer);
      this.#onWatchers(this.#watchers.size);
    });
    this.#onWatchers(this.#watchers.size);
  }

  send(name, data) {
    if (this.#watchers.size === 0) return;
    const text = format(name, data);
    for (const watcher of this.#watchers) watcher.write(text);
  }

  /** Adds one answered press, sent with its neighbours: `[ms since 1970, response ms, mode, who]`. */
  addSample(sample) {
    if (this.#watchers.size === 0) return;
    this.#samples.push(sample);
    this.#flusher ??= setTimeout(() => this.#flush(), flushEveryMs);
  }

  close() {
    clearTimeout(this.#flusher);
    for (const watcher of this.#watchers) watcher.end();
  }

  #flush() {
    this.#flusher = undefined;
    this.send('samples', { nowMs: Date.now(), samples: this.#samples.splice(0) });
  }
}

function format(name, data) {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
