// Lines of threads whose time is in a record that many share, from made-up records.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NativeTracedRecord } from '../../src/native.js';
import type { Joined, Material } from '../../src/syscalls/counted.js';
import { ProcessTree } from '../../src/syscalls/process-tree.js';
import { SharedRecords } from '../../src/syscalls/shared-records.js';

const second = 1_000_000_000;
const root = { pid: 10, program: 'node', args: ['node', 'app.js'], isCgi: false };

/** The record of all tasks that had no other one. */
function othersWith(runNs: number): NativeTracedRecord {
  return {
    pid: 0,
    tid: 0,
    isEnded: false,
    isStarting: false,
    tasks: 1,
    runNs,
    name: '',
    calls: [],
  };
}

function recordsWith(...records: NativeTracedRecord[]): SharedRecords {
  const tree = new ProcessTree(root.pid);
  const followed = new Set([root.pid]);
  const material: Material = { method: 'ebpf', tree, records, root, followed };
  return new SharedRecords(material, records);
}

/** A thread that ended without a record of its own. */
function ended(runNs: number, runBeforeNs: number): Joined {
  const seen = {
    pid: root.pid,
    tid: 12,
    name: 'computes',
    hasEnded: true,
    times: { userMs: runNs / 1e6, systemMs: 0 },
    runNs,
    runBeforeNs,
    samples: 0,
    running: 0,
    found: new Map(),
  };
  return { pid: root.pid, tid: 12, seen, records: [] };
}

test('an ended thread from before the trace keeps its line when no record holds its time', () => {
  assert.equal(recordsWith(othersWith(0)).take(ended(second, 5 * second), true), false);
  assert.equal(recordsWith(othersWith(second / 2)).take(ended(second, 5 * second), true), false);
  assert.equal(recordsWith().take(ended(second, 5 * second), true), false);
});

test('an ended thread whose time may be in the shared record has no line', () => {
  assert.equal(recordsWith(othersWith(2 * second)).take(ended(second, 5 * second), true), true);
});

test('an ended thread that began during the trace has no line: it had a record from its start', () => {
  assert.equal(recordsWith(othersWith(0)).take(ended(second, 0), true), true);
});
