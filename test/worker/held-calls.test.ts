// Aborts of calls that a worker has and may not begin yet: its set-up goes on, or another task runs. Over a
// channel between two ends of this process, because a pool mostly reclaims such a call before its worker
// reads the abort.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { acceptChannel, offerChannel } from '../../src/channels/index.js';
import { createExporter, createImporter } from '../../src/context/index.js';
import { report } from '../../src/public.js';
import { ConcurrencyLimit } from '../../src/worker/both/concurrency-limit.js';
import { Session } from '../../src/worker/inside/session.js';
import { Link, rest } from '../../src/worker/link.js';
import { frame, noSetup } from '../../src/worker/protocol.js';
import { waitFor } from '../support/index.js';

/** A parent, with the session of a worker that runs one task at a time. */
class Parent {
  /** `[slot, what came]`, in order. */
  readonly answers: [slot: number, answer: unknown][] = [];
  readonly #exporter = createExporter();
  readonly #link: Link;
  readonly #reports: number[] = [];

  constructor(t: TestContext) {
    const offer = offerChannel('memory', { worker: 'thread', spin: false });
    const session = new Session({
      end: acceptChannel(offer.ticket),
      concurrencyLimit: new ConcurrencyLimit(1),
      maxRssBytes: 0,
      isThread: true,
      isPartition: false,
      onLearn: () => {},
      onTurn: () => {},
      onClose: () => {},
    });
    session.ref();
    const importer = createImporter({ exporter: this.#exporter });
    this.#link = new Link({
      end: offer.open(undefined),
      exporter: this.#exporter,
      importer,
      frames: undefined,
      what: 'an argument',
      events: {
        onFrame: (kind, slot, target, body) => {
          if (kind === frame.report) this.#reports.push(target);
          else if (kind === frame.result) this.answers.push([slot, this.#link.codec.read(body)]);
          else if (kind === frame.error)
            this.answers.push([slot, importer.importValue(rest(body))]);
        },
        onDrain: () => {},
        onClose: () => {},
      },
    });
    this.#link.ref();
    t.after(() => {
      this.#link.destroy();
      session.destroy();
    });
  }

  setUp(): void {
    this.#link.post(frame.setup, 0, noSetup, undefined);
  }

  call(slot: number, fn: () => unknown): void {
    const { id, definitions } = this.#exporter.exportFunction(fn);
    this.#link.define(definitions);
    this.#link.post(frame.call, slot, id, []);
  }

  abort(slot: number): void {
    this.#link.post(frame.abort, slot, 0, undefined);
  }

  /** The task that reports runs; it goes on after `goOn`. */
  async reported(): Promise<void> {
    await waitFor(() => this.#reports.length > 0, 10_000, 'the task reports');
  }

  goOn(): void {
    for (const number of this.#reports.splice(0)) {
      this.#link.post(frame.reported, 0, number, undefined);
    }
  }

  async answered(count: number): Promise<unknown[]> {
    await waitFor(() => this.answers.length >= count, 10_000, `${count} calls are answered`);
    return this.answers.map(([slot, answer]) => [
      slot,
      answer instanceof Error ? Reflect.get(answer, 'code') : answer,
    ]);
  }
}

test('a call that is aborted before the set-up is done never begins', async (t) => {
  const parent = new Parent(t);
  parent.call(0, () => 'first');
  parent.call(1, () => 'second');
  parent.call(2, () => 'third');
  parent.abort(1);
  parent.setUp();
  const expected = [
    [0, 'first'],
    [1, 'ABORTED'],
    [2, 'third'],
  ];
  assert.deepEqual(await parent.answered(3), expected);
  parent.call(1, () => 'again');
  assert.deepEqual(await parent.answered(4), [...expected, [1, 'again']]);
});

test('a call that is aborted while another task runs never begins, and is answered in turn', async (t) => {
  const parent = new Parent(t);
  parent.setUp();
  parent.call(0, async () => {
    await report('runs');
    return 'first';
  });
  await parent.reported();
  parent.call(1, () => 'second');
  parent.call(2, () => 'third');
  parent.abort(1);
  parent.call(3, () => 'fourth');
  parent.abort(3);
  assert.deepEqual(parent.answers, []);
  parent.goOn();
  const expected = [
    [0, 'first'],
    [1, 'ABORTED'],
    [2, 'third'],
    [3, 'ABORTED'],
  ];
  assert.deepEqual(await parent.answered(4), expected);
  parent.call(3, () => 'again');
  assert.deepEqual(await parent.answered(5), [...expected, [3, 'again']]);
});
