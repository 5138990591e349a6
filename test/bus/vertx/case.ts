// A case of Vert.x's own tests, and what it needs to run on manycore's bus: one end that sends, and one with
// the consumers. Each case runs with both ends in one loop, in two processes, in two programs,
// and in two programs over NATS (places.ts). Not here: the cases, by theme in the files beside this one.

import type { Bus } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';

/** The end that has the consumers. */
export interface ConsumerEnd {
  readonly bus: Bus;
  /** Sends a value to `Ends.notes`. */
  readonly note: (value: unknown) => void;
  /** Values that a case needs again; all are disposed of after it. */
  readonly kept: Map<string, Kept>;
}

export interface Kept extends Disposable {
  close(): void;
  pause?(): unknown;
  resume?(): unknown;
  fetch?(count: number): unknown;
}

/** Runs at the end with the consumers; it may be sent there, with its captures. */
export type Act = (end: ConsumerEnd) => unknown;

export interface Ends {
  /** The bus that sends. */
  readonly bus: Bus;
  /** Not used by any other case. */
  readonly address: string;
  /** Values that the other end has noted. */
  readonly notes: readonly unknown[];
  /** Runs `act` at the other end. Returns its result when both ends have all consumers of both. */
  there<Result>(act: (end: ConsumerEnd) => Result): Promise<Awaited<Result>>;
  /** Waits for `count` notes; returns all, with those that messages sent before this still caused. */
  noted(count: number): Promise<readonly unknown[]>;
  /** Joins one program more, for cases between two programs. */
  join(): Promise<JoinedProgram>;
}

/** A program in the cluster of both ends. */
export interface JoinedProgram {
  readonly bus: Bus;
  readonly cluster: { close(): Promise<void> };
}

export interface Case {
  /** The name of Vert.x's test. */
  readonly name: string;
  /** The expectation of Vert.x's test. */
  readonly expects: string;
  /** Checks it, or the difference. */
  readonly run?: ((ends: Ends) => Promise<void>) | undefined;
  /** The least placement that it needs. Default: any. */
  readonly least?: 'two processes' | 'two programs' | undefined;
  /** The file in `test/` and the title of another test that checks it. */
  readonly shownBy?: readonly [file: string, title: string];
  /** The difference, in one sentence. */
  readonly differs?: string;
  /** A difference over NATS alone, in one sentence, and its check in place of `run`. */
  readonly overNats?: string;
  readonly runOverNats?: (ends: Ends) => Promise<void>;
  /** Reason why there is nothing like it here, in one sentence. */
  readonly absent?: string;
}

/** Returns an act that notes every body to `address`. */
export function record(address: string, name = 'consumer'): Act {
  return ({ bus, note, kept }) => {
    kept.set(
      name,
      bus.consumer(address, ({ body }) => note(body)),
    );
  };
}

/** Returns an act that answers every request to `address`. */
export function answer(address: string, body: unknown): Act {
  return ({ bus }) => {
    bus.consumer(address, (message) => message.reply(body));
  };
}

/** Waits until `notes` has `count` items. */
export async function untilNoted(notes: readonly unknown[], count: number): Promise<void> {
  await waitFor(() => notes.length >= count, undefined, `${count} notes`);
}
