// A span and the work in it. Errors are recorded where they pass, whoever handles them later.

import type { Context, Span } from '@opentelemetry/api';
import { messageOf } from '../../lib/index.js';
import { generatorOf } from '../../worker/index.js';
import type { Api } from './api.js';

export class Activity {
  readonly #api: Api;
  readonly #span: Span;
  readonly #context: Context;
  #noted: { readonly error: unknown } | undefined;

  constructor(api: Api, span: Span, parent: Context) {
    this.#api = api;
    this.#span = span;
    this.#context = api.trace.setSpan(parent, span);
  }

  /** Calls `work` with the span as the current one; records nothing. */
  inside<R>(work: () => R): R {
    return this.#api.context.with(this.#context, work);
  }

  /**
   * Calls `work` and records its error, also that of a returned promise or generator. Throws what `work`
   * throws.
   */
  run<R>(work: () => R): R {
    try {
      const result = this.inside(work);
      if (result instanceof Promise) {
        result.then(
          (value) => this.#watch(value),
          (error: unknown) => this.#note(error),
        );
      }
      this.#watch(result);
      return result;
    } catch (error) {
      this.#note(error);
      throw error;
    }
  }

  /** The body of a generator runs in calls of its methods. */
  #watch(result: unknown): void {
    const generator: object | undefined = generatorOf(result);
    if (generator === undefined) return;
    for (const name of ['next', 'return', 'throw'] as const) {
      const method: (...args: unknown[]) => unknown = Reflect.get(generator, name);
      const value = (...args: unknown[]): unknown =>
        this.run(() => Reflect.apply(method, generator, args));
      Object.defineProperty(generator, name, { value, configurable: true });
    }
  }

  /** Ends the span. `failure`: the error of the work, also one that was recorded before. */
  end(failure?: { readonly error: unknown }): void {
    if (failure !== undefined) this.#note(failure.error);
    this.#span.end();
  }

  #note(error: unknown): void {
    if (this.#noted !== undefined && this.#noted.error === error) return;
    this.#noted = { error };
    const { SpanStatusCode } = this.#api;
    this.#span.recordException(error instanceof Error ? error : messageOf(error));
    const { code } = Object(error);
    if (typeof code === 'string') this.#span.setAttribute('error.type', code);
    this.#span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) });
  }
}
