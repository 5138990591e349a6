// A module of the user: imported by cases.ts, and so imported again in the peer.

import { createHash } from 'node:crypto';

export class Shape {
  readonly sides: number;

  constructor(sides: number) {
    this.sides = sides;
  }

  describe(): string {
    return `${this.sides} sides`;
  }
}

export default function double(value: number): number {
  return value * 2;
}

export const state = { count: 0 };

export function hash(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

/** Returned and not called: run(fnVariable) with a function of this module. */
export function makeAdder(first: number): (second: number) => number {
  return (second) => first + second + state.count;
}
