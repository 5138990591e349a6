// Spans of tasks. To the context layer this class is an async storage registered by propagate(). Its store at
// a call is the trace of the caller, as headers made by OpenTelemetry's propagators. Running in the store, in
// the worker, means running in a child span of the caller's. So traces travel as all storages do, and calls
// outside of a trace cost nothing. A worker without this storage just runs the task.
//
// One span for a task; for a map one for each chunk, not each item: a million spans are useless.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attributes, Context, Tracer } from '@opentelemetry/api';
import { type RunningTask, runningTask, workerNumber } from '../../worker/index.js';
import { Activity } from './activity.js';
import type { Api } from './api.js';

interface Carried {
  readonly headers: Readonly<Record<string, string>>;
  /** Time of the call, by the caller's clock. */
  readonly sentMs: number;
}

export class TaskTraces extends AsyncLocalStorage<Carried> {
  readonly #api: Api;
  readonly #tracer: () => Tracer;
  readonly #activities = new WeakMap<RunningTask, Activity>();

  constructor(api: Api, tracer: () => Tracer) {
    super();
    this.#api = api;
    this.#tracer = tracer;
  }

  /** `undefined`: the caller is in no trace. */
  override getStore(): Carried | undefined {
    const { context, propagation, trace } = this.#api;
    const active = context.active();
    // Some propagators, such as baggage, inject headers outside of a trace, too.
    if (trace.getSpanContext(active) === undefined) return undefined;
    const headers: Record<string, string> = {};
    propagation.inject(active, headers);
    for (const _name in headers) return { headers, sentMs: Date.now() };
    return undefined;
  }

  override run<R, Args extends unknown[]>(
    carried: Carried,
    callback: (...args: Args) => R,
    ...args: Args
  ): R {
    const { context, propagation, ROOT_CONTEXT } = this.#api;
    const task = runningTask();
    // A set-up function, or a callback that is called after its task.
    if (task === undefined) {
      const parent = propagation.extract(ROOT_CONTEXT, carried.headers);
      return context.with(parent, callback, undefined, ...args);
    }
    const activity = this.#activities.get(task) ?? this.#begin(task, carried, callback.name);
    return activity.run(() => callback(...args));
  }

  #begin(task: RunningTask, { headers, sentMs }: Carried, name: string): Activity {
    const { propagation, ROOT_CONTEXT } = this.#api;
    const parent: Context = propagation.extract(ROOT_CONTEXT, headers);
    const { chunk } = task;
    const called = name === '' ? 'anonymous' : name;
    const attributes: Attributes = {
      'code.function.name': called,
      'manycore.worker': workerNumber(),
      // The mapper of a map is sent once, long before its chunks.
      ...(chunk === undefined && { 'manycore.task.wait': secondsSince(sentMs) }),
      ...(chunk !== undefined && { 'manycore.map.items': chunk.count }),
    };
    const what = chunk === undefined ? `task ${called}` : `map ${called}`;
    const span = this.#tracer().startSpan(what, { attributes }, parent);
    const activity = new Activity(this.#api, span, parent);
    this.#activities.set(task, activity);
    task.whenOver((failure) => activity.end(failure));
    return activity;
  }
}

/** Clocks of two machines may differ. */
function secondsSince(ms: number): number {
  return Math.max(0, Date.now() - ms) / 1000;
}
