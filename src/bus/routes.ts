// Who receives what: for each address its receivers, and whose turn it is. Pure: nothing is sent here.

/** The receivers of one address; each counts as often as it has consumers. */
interface Route<Receiver> {
  /** Smooth weighted round robin (nginx): `current` grows by `weight`, who has most is next. */
  readonly entries: { readonly receiver: Receiver; weight: number; current: number }[];
}

export class Routes<Receiver> {
  readonly #routes = new Map<string, Route<Receiver>>();

  /** So many consumers of `address` are behind `receiver` from now on; 0: none any more. */
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

  /** How many consumers are behind `receiver`. */
  weightOf(address: string, receiver: Receiver): number {
    const entries = this.#routes.get(address)?.entries ?? [];
    return entries.find((each) => each.receiver === receiver)?.weight ?? 0;
  }

  /** How many consumers an address has. */
  totalOf(address: string): number {
    const entries = this.#routes.get(address)?.entries ?? [];
    return entries.reduce((sum, { weight }) => sum + weight, 0);
  }

  /** All of an address, each once. */
  all(address: string): Receiver[] {
    return this.#routes.get(address)?.entries.map(({ receiver }) => receiver) ?? [];
  }

  /** Whose turn it is, by turns and in the shares of the weights; `undefined`: nobody is there. */
  next(address: string): Receiver | undefined {
    const entries = this.#routes.get(address)?.entries ?? [];
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

  /** Those with receivers. */
  addresses(): string[] {
    return [...this.#routes.keys()];
  }

  /** All of all addresses, each once. */
  everyone(): Set<Receiver> {
    const entries = [...this.#routes.values()].flatMap((route) => route.entries);
    return new Set(entries.map(({ receiver }) => receiver));
  }
}
