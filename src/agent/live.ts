// What of this thread can be asked for figures: pools, buses, loops. They enter themselves here when they
// open, and the first starts what answers (socket.ts), a second later: a program that is over before is not
// worth a socket. What is left behind without having been closed is not held by this list. In a context of
// node:vm nothing starts: nobody watches a test file, and its loader may be gone a second later.

import { clearTimeout, isMainRealm, setTimeout } from '../internal/index.js';
import type { SourceFigures, SourceKind, ThreadFigures } from './figures.js';
import type { LookOptions } from './sampler.js';

interface Entry {
  readonly kind: SourceKind;
  readonly id: number;
  readonly owner: WeakRef<object>;
  /** `undefined` once the owner is gone. */
  readonly read: () => object | undefined;
  /** `undefined` where nothing has to be asked elsewhere. */
  readonly refresh: () => Promise<unknown> | undefined;
}

/** Between the first source and the start. */
const settledMs = 1000;
/** What has to be asked elsewhere is waited for no longer than this. */
const refreshMs = 50;
/** Whoever does not want to be seen sets it to this. */
const off = '0';

const entries = new Set<Entry>();
const lastIds = new Map<SourceKind, number>();
let begun: AgentStart | undefined;

/**
 * `read` must not hold its owner, nor may `refresh`, which brings in beforehand what `read` tells and has to be
 * asked elsewhere. Returns what takes it off the list again.
 */
export function addSource<Owner extends object>(
  kind: SourceKind,
  owner: Owner,
  read: (owner: Owner) => object,
  refresh?: (owner: Owner) => Promise<unknown>,
): () => void {
  const ref = new WeakRef(owner);
  const id = (lastIds.get(kind) ?? 0) + 1;
  lastIds.set(kind, id);
  const entry: Entry = {
    kind,
    id,
    owner: ref,
    read: () => {
      const found = ref.deref();
      return found && read(found);
    },
    refresh: () => {
      const found = ref.deref();
      return found && refresh?.(found);
    },
  };
  entries.add(entry);
  startSoon();
  return () => {
    entries.delete(entry);
    if (entries.size === 0) rest();
  };
}

/** Of all that are there. */
export function sourceFigures(): SourceFigures[] {
  const all: SourceFigures[] = [];
  for (const entry of entries) {
    const figures = entry.read();
    if (figures === undefined) entries.delete(entry);
    else all.push({ kind: entry.kind, id: entry.id, figures });
  }
  return all;
}

/**
 * Lets all sources bring in what they have to ask for. What has not come in time is told as it was.
 * `isHeld`: the event loop is kept alive meanwhile.
 */
async function refreshSources(isHeld: boolean): Promise<void> {
  const asked = [...entries].flatMap((entry) => entry.refresh() ?? []);
  if (asked.length === 0) return;
  await new Promise<unknown>((resolve) => {
    const timer = setTimeout(resolve, refreshMs);
    if (!isHeld) timer.unref();
    void Promise.allSettled(asked).then(() => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}

/** Of this thread, as they are now; from now on somebody watches. Without a socket, also where none is wanted. */
export async function ownFigures(options: LookOptions = {}): Promise<ThreadFigures> {
  const { threadSampler } = await import('./sampler.js');
  await refreshSources(true);
  return threadSampler(sourceFigures).look(options);
}

function startSoon(): void {
  if (begun !== undefined || !isMainRealm) return;
  if (process.env['MANYCORE_AGENT'] !== off) begun = new AgentStart();
}

function rest(): void {
  begun?.end();
  begun = undefined;
}

/** From the first source on: it waits, loads what answers, answers, and is over at any of these points. */
class AgentStart {
  // That nobody can ask is no reason for a program to fail.
  readonly #timer = setTimeout(() => void this.#open().catch(() => {}), settledMs).unref();
  #close: (() => void) | undefined;
  #isOver = false;

  async #open(): Promise<void> {
    const { openSocket } = await import('./socket.js');
    if (this.#isOver) return;
    this.#close = openSocket(sourceFigures, () => refreshSources(false));
    // A program whose loop has run empty is about to end: nothing of ours is left open then.
    process.once('beforeExit', rest);
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#close?.();
    process.off('beforeExit', rest);
  }
}
