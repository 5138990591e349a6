// The ends of a deployment's instances, for its monitors. The loss of a loop is reported once its reason is known,
// which the supervisor reports later than the channels (restarts.ts), at the latest when the instance is removed.

import type { FollowEnds, InstanceEnd } from '../../bus/index.js';

/** The notice for a deployment that had ended when its monitor began. */
export function noInstance({
  id,
  name,
}: {
  readonly id: number;
  readonly name: string;
}): InstanceEnd {
  return { deployment: id, name, instance: undefined, reason: 'none', why: 'it had ended before' };
}

type Reason = InstanceEnd['reason'];

/** An instance, by its number. */
interface Numbered {
  readonly instance: number;
}

export class InstanceEnds {
  readonly #deployment: number;
  readonly #name: string;
  readonly #listeners = new Set<{ readonly call: (end: InstanceEnd) => void }>();
  /** Instances whose loop has ended, and whose end was not reported yet. */
  readonly #unreported = new Set<Numbered>();
  #isOver = false;

  constructor(deployment: number, name: string) {
    this.#deployment = deployment;
    this.#name = name;
  }

  readonly follow: FollowEnds = (call) => {
    const listener = { call };
    if (this.#isOver) call(noInstance({ id: this.#deployment, name: this.#name }));
    else this.#listeners.add(listener);
    const close = (): void => {
      this.#listeners.delete(listener);
    };
    return { close, [Symbol.dispose]: close };
  };

  report({ instance }: Numbered, reason: Reason, why: string): void {
    const end = { deployment: this.#deployment, name: this.#name, instance, reason, why };
    for (const { call } of this.#listeners) call(end);
  }

  /** Notes that its loop or thread has ended; `lost` reports it. */
  add(placed: Numbered): void {
    this.#unreported.add(placed);
  }

  /** Reports a loss that was added, once. */
  lost(placed: Numbered, why: string): void {
    if (this.#unreported.delete(placed)) this.report(placed, 'lost', why);
  }

  /** The deployment has ended. */
  close(): void {
    this.#isOver = true;
    this.#listeners.clear();
  }
}
