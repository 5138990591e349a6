// Values that are compared by identity, as a module exports them.

export const red = Symbol('red');
export const blue = Object.freeze({ name: 'blue', parts: Object.freeze([1, 2]) });

class Shade {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
    Object.freeze(this);
  }
}

export const dark = new Shade('dark');
export const noop = () => {};
export class Kind {}
/** A value that differs in each process. */
export const start = Object.freeze({ at: Math.random() });
export let state: { readonly count: number } = Object.freeze({ count: 0 });
export function increase(): void {
  state = Object.freeze({ count: state.count + 1 });
}
export const settings: { level: number } = { level: 1 };
export const shallow = Object.freeze({ list: [1] });

export const isRed = (value: unknown): boolean => value === red;
export const isBlue = (value: unknown): boolean => value === blue;
