// The receivers of each address, and whose turn it is. Pure: nothing is sent here.

/** The receivers of one address; each counts as often as it has consumers. */
interface Route<Receiver> {
  /** Smooth weighted round robin (nginx): `current` grows by `weight`, the largest is next. */
  readonly entries: { readonly receiver: Receiver; weight: number; current: number }[];
}

export class Routes<Receiver> {
  readonly #routes = new Map<string, Route<Receiver>>();

  /** Sets the number of consumers behind `receiver`; 0 removes it. */
  set(address: string, receiver: Receiver, weight: number): void {
    const route = this.#routes.get(address) ?? { entries: [] };
    const at = route.entries.findIndex((each) => each.receiver === receiver);
    const entry = route.entries[at];
    if (weight === 0) {
      if (at >= 0) route.entries.splice(at, 1);
    } else if (entry === undefined) {
      route.entries.push({ receiver, weight, current: 0 });
    } else {
      entry.weight = weight;
    }
    if (route.entries.length === 0) this.#routes.delete(address);
    else this.#routes.set(address, route);
  }

  has(address: string): boolean {
    return this.#routes.has(address);
  }

  /** Returns the number of consumers behind `receiver`. */
  weightOf(address: string, receiver: Receiver): number {
    const entries = this.#routes.get(address)?.entries ?? [];
    return entries.find((each) => each.receiver === receiver)?.weight ?? 0;
  }

  /** Returns the number of consumers of an address. */
  totalOf(address: string): number {
    const entries = this.#routes.get(address)?.entries ?? [];
    return entries.reduce((sum, { weight }) => sum + weight, 0);
  }

  /** Returns the receivers of an address, each once. */
  all(address: string): Receiver[] {
    return this.#routes.get(address)?.entries.map(({ receiver }) => receiver) ?? [];
  }

  /**
   * Returns the next receiver among those that are `eligible`, in proportion to the weights; `undefined`: there
   * is none.
   */
  next(address: string, eligible?: (receiver: Receiver) => boolean): Receiver | undefined {
    let entries = this.#routes.get(address)?.entries ?? [];
    if (eligible !== undefined) entries = entries.filter(({ receiver }) => eligible(receiver));
    const [first] = entries;
    if (first === undefined) return undefined;
    let best = first;
    let sum = 0;
    for (const each of entries) {
      each.current += each.weight;
      sum += each.weight;
      if (each.current > best.current) best = each;
    }
    best.current -= sum;
    return best.receiver;
  }

  /** Returns the addresses that have receivers. */
  addresses(): string[] {
    return [...this.#routes.keys()];
  }

  /** Returns the receivers of all addresses, each once. */
  everyone(): Set<Receiver> {
    const entries = [...this.#routes.values()].flatMap((route) => route.entries);
    return new Set(entries.map(({ receiver }) => receiver));
  }
}
