// View of one program: its pools with their workers, its loops and servers, and their recent history.

import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { bytesText, countText, msText, percentText, shortTitle } from '../src/observe/format.js';
import type {
  PoolView,
  ProgramView,
  ServerView,
  SummaryView,
} from '../src/observe/views/view-types.js';
import type { OnSlice } from './app.js';
import { Charts } from './charts.js';
import { busColumns, loopColumns, memoryColumns, threadColumns, workerColumns } from './columns.js';
import { Durations } from './durations.js';
import type { History } from './history.js';
import { Lanes } from './lanes.js';
import { Table } from './table.js';

interface Props {
  readonly program: ProgramView;
  readonly history: History;
  readonly onSlice: RefObject<OnSlice>;
}

export function Program({ program, history, onSlice }: Props) {
  const listeners = useListeners(onSlice);
  const { servers, threads, pools, buses, memories, summary } = program;
  const hasPools = pools.length > 0;
  return (
    <>
      <Summary summary={summary} />
      {servers.map((server) => (
        <Server key={server.key} server={server} />
      ))}
      {pools.map((pool) => (
        <Pool key={numbersOf(pool)} pool={pool} history={history} listeners={listeners} />
      ))}
      {hasPools && <Durations history={history} />}
      <section>
        <h2>Event loops</h2>
        <Table
          label="Event loops"
          columns={threadColumns}
          rows={threads}
          keyOf={({ pid, thread }) => `${pid}.${thread}`}
        />
      </section>
      <Charts history={history} hasPools={hasPools} />
      {buses.length > 0 && (
        <section>
          <h2>Buses</h2>
          <Table label="Buses" columns={busColumns} rows={buses} keyOf={numbersOf} />
        </section>
      )}
      {memories.length > 0 && (
        <section>
          <h2>Transactional memory</h2>
          <Table
            label="Transactional memory"
            columns={memoryColumns}
            rows={memories}
            keyOf={numbersOf}
          />
        </section>
      )}
      <Notes notes={history.notes} />
    </>
  );
}

/** Listeners for slices of the shown program. */
function useListeners(onSlice: RefObject<OnSlice>): Set<OnSlice> {
  const listeners = useRef(new Set<OnSlice>());
  useEffect(() => {
    onSlice.current = (key, slice) => {
      for (const listener of listeners.current) listener(key, slice);
    };
    return () => {
      onSlice.current = () => {};
    };
  }, [onSlice]);
  return listeners.current;
}

/** Unique key of a pool, or of a bus, within its program. */
function numbersOf({ pid, thread, id }: Pick<PoolView, 'pid' | 'thread' | 'id'>): string {
  return `${pid}.${thread}.${id}`;
}

function Summary({ summary }: { readonly summary: SummaryView }) {
  return (
    <Stats
      label="The whole program"
      stats={[
        ['CPU', percentText(summary.cpuShare)],
        ['Memory', bytesText(summary.rssBytes)],
        ['Busiest loop', percentText(summary.utilization)],
        ['Lag p99', msText(summary.lagP99Ms)],
        ['Tasks/s', countText(summary.tasksPerSecond)],
        ['Requests/s', countText(summary.requestsPerSecond)],
      ]}
    />
  );
}

function Notes({ notes }: Pick<History, 'notes'>) {
  if (notes.length === 0) return null;
  return (
    <section>
      <h2>Events</h2>
      <ul class="notes">
        {notes.map(({ at, text }) => (
          <li key={at + text}>
            {at} {text}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Stats({
  label,
  stats,
}: {
  readonly label: string;
  readonly stats: readonly (readonly [string, string])[];
}) {
  return (
    <dl class="stats" aria-label={label}>
      {stats
        .filter(([, value]) => value !== '-')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function Pool({
  pool,
  history,
  listeners,
}: {
  readonly pool: PoolView;
  readonly history: History;
  readonly listeners: Set<OnSlice>;
}) {
  const where =
    pool.thread === 0 ? `process ${pool.pid}` : `process ${pool.pid}, thread ${pool.thread}`;
  return (
    <section>
      <h2>Pool {pool.id}</h2>
      <p class="note">
        In {where}, over {pool.channel}. Wait and run p99 count since it was opened.
        {pool.isSilent && ' It does not answer: this is as it was before.'}
      </p>
      <Stats
        label={`Pool ${pool.id}`}
        stats={[
          ['Workers busy', `${pool.busyWorkers} of ${pool.workers.length}`],
          ['Waiting', countText(pool.waitingTasks)],
          ['Tasks/s', countText(pool.tasksPerSecond)],
          ['Failed/s', countText(pool.failedPerSecond)],
          ['Wait p99', msText(pool.waitP99Ms)],
          ['Run p99', msText(pool.runP99Ms)],
          ['Workers ended', String(pool.endedWorkers)],
          ['Workers lost', String(pool.lostWorkers)],
          ['Memory limit of each', bytesText(pool.partition?.memoryBytes)],
          ['CPU limit of each', percentText(pool.partition?.cpuShare)],
        ]}
      />
      <Lanes pool={pool} history={history} listeners={listeners} />
      <details>
        <summary>Workers as a table</summary>
        <Table
          label={`Workers of pool ${pool.id}`}
          columns={workerColumns}
          rows={pool.workers}
          keyOf={({ id }) => id}
        />
      </details>
    </section>
  );
}

function Server({ server }: { readonly server: ServerView }) {
  const { app, addresses, units, loops } = server;
  const title = addresses.length > 0 ? `Server ${shortTitle(app)}` : 'Units';
  return (
    <section>
      <h2>{title}</h2>
      <p class="note">{addresses.length > 0 ? `At ${addresses.join(', ')}.` : units.join(', ')}</p>
      <Stats
        label={title}
        stats={[
          ['Requests/s', countText(server.requestsPerSecond)],
          ['Open connections', countText(server.openConnections)],
          ['Turned away (503)', countText(server.turnedAway)],
          ['Lost processes', countText(server.lostProcesses)],
        ]}
      />
      <Table
        label={`Loops of ${title}`}
        columns={loopColumns}
        rows={loops}
        keyOf={({ process, loop }) => `${process}.${loop}`}
      />
    </section>
  );
}
