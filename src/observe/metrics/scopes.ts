// Scopes of metrics: threads, processes, pools, buses, transactional memories, servers and their loops, each with
// the labels that distinguish its samples. Not here: the metrics (definitions.ts).

import type { ThreadStats } from '../../agent/index.js';
import type { BusStats } from '../../bus/index.js';
import type { HistogramSummary, PoolSample } from '../../pool/index.js';
import type { LoopStatus, ServerStats } from '../../serve/index.js';
import type { ProcessReading } from './processes.js';
import type { ProgramReading, WatchedThread } from './reading.js';
import {
  busesOf,
  loopsOf,
  memoriesOf,
  poolsOf,
  type Source,
  type StmSample,
  serversOf,
} from './sources.js';
import type { WorkerReading } from './workers.js';

export type Labels = Readonly<Record<string, string | number>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** Seconds, bytes, a share of 1, or counted `{things}`. */
export type Unit = 's' | 'By' | '1' | `{${string}}`;

export interface MetricDefinition {
  /** Name without the prefix `manycore.`. */
  readonly name: string;
  /** Prometheus gets a histogram as such, OpenTelemetry its sum as a counter. */
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly unit: Unit;
  readonly help: string;
  readonly labels: readonly string[];
  /** Reads all samples, in no order; label sets are unique. */
  readonly read: (program: ProgramReading) => Sample[];
  /** Histograms only. */
  readonly readDurations?: (program: ProgramReading) => DurationSample[];
}

export interface DurationSample {
  readonly labels: Labels;
  readonly durations: Durations;
}

/** Summary of a histogram, possibly of another version. */
export type Durations = Partial<HistogramSummary>;

/** Values by one more label; an `undefined` value has no sample. */
export type Values = Readonly<Record<string, number | undefined>>;

type Row<Of> = readonly [
  name: string,
  type: 'counter' | 'gauge',
  unit: Unit,
  help: string,
  read: (of: Of) => number | undefined | Values,
  /** The label whose values are the keys of what `read` returns. */
  by?: string,
];

interface Scope<Of> {
  readonly labels: readonly string[];
  readonly all: (program: ProgramReading) => readonly Of[];
  readonly labelsOf: (of: Of) => Labels;
}

export function define<Of>(
  { labels, all, labelsOf }: Scope<Of>,
  rows: readonly Row<Of>[],
): MetricDefinition[] {
  return rows.map(([name, type, unit, help, read, by]) => {
    const samplesOf = (of: Of): Sample[] => {
      const found = read(of);
      const values = typeof found === 'object' ? found : { '': found };
      return Object.entries(values).flatMap(([each, value]) => {
        if (value === undefined) return [];
        const labels = labelsOf(of);
        return [{ labels: by === undefined ? labels : { ...labels, [by]: each }, value }];
      });
    };
    return {
      name,
      type,
      unit,
      help,
      labels: by === undefined ? labels : [...labels, by],
      read: (program) => all(program).flatMap(samplesOf),
    };
  });
}

/** Histograms of durations. */
export function defineDurations<Of>(
  { labels, all, labelsOf }: Scope<Of>,
  rows: readonly (readonly [name: string, help: string, read: (of: Of) => Durations | undefined])[],
): MetricDefinition[] {
  return rows.map(([name, help, read]) => {
    const readDurations = (program: ProgramReading): DurationSample[] =>
      all(program).flatMap((of) => {
        const durations = read(of);
        return durations === undefined ? [] : [{ labels: labelsOf(of), durations }];
      });
    return {
      name,
      type: 'histogram',
      unit: 's',
      help,
      labels,
      readDurations,
      read: (program) =>
        readDurations(program).map(({ labels: of, durations }) => ({
          labels: of,
          value: (durations.sumMs ?? 0) / 1000,
        })),
    };
  });
}

export const upScope: Scope<WatchedThread> = {
  labels: ['pid', 'thread'],
  all: ({ watched }) => watched,
  labelsOf: ({ pid, thread }) => ({ pid, thread }),
};

export const threadScope: Scope<ThreadStats> = {
  labels: ['pid', 'thread'],
  all: ({ threads }) => threads,
  labelsOf: ({ pid, thread }) => ({ pid, thread }),
};

export const processScope: Scope<ProcessReading> = {
  labels: ['pid', 'role', 'slot'],
  all: ({ processes }) => processes,
  labelsOf: ({ pid, role, slot }) => (slot === undefined ? { pid, role } : { role, slot }),
};

export const workerScope: Scope<WorkerReading> = {
  labels: ['slot'],
  all: ({ workers }) => workers,
  labelsOf: ({ slot }) => ({ slot }),
};

export const poolScope: Scope<Source<PoolSample>> = {
  labels: ['pid', 'thread', 'pool'],
  all: ({ threads }) => poolsOf(threads),
  labelsOf: ({ pid, thread, id }) => ({ pid, thread, pool: id }),
};

export const busScope: Scope<Source<BusStats>> = {
  labels: ['pid', 'thread', 'bus'],
  all: ({ threads }) => busesOf(threads),
  labelsOf: ({ pid, thread, id }) => ({ pid, thread, bus: id }),
};

export const memoryScope: Scope<Source<StmSample>> = {
  labels: ['pid', 'thread'],
  all: ({ threads }) => memoriesOf(threads),
  labelsOf: ({ pid, thread }) => ({ pid, thread }),
};

export const serverScope: Scope<Source<ServerStats>> = {
  labels: ['pid', 'thread', 'server'],
  all: ({ threads }) => serversOf(threads),
  labelsOf: ({ pid, thread, id }) => ({ pid, thread, server: id }),
};

export const servedScope: Scope<LoopStatus & { readonly pid: number }> = {
  labels: ['pid', 'loop'],
  all: ({ threads }) => loopsOf(threads),
  labelsOf: ({ pid, loop }) => ({ pid, loop }),
};
