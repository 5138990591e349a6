// Histograms of waits and durations of tasks in the last half minute, and a list of the longest tasks.

import { countText, msText } from '../src/observe/format.js';
import type { History, LongTask } from './history.js';
import { type Column, Table } from './table.js';

const longColumns: readonly Column<LongTask>[] = [
  { head: 'Task', cell: ({ name }) => name || '(no name)', isText: true },
  { head: 'Worker', cell: ({ worker }) => worker || 'inline' },
  { head: 'Ran', cell: ({ ranMs }) => msText(ranMs) },
  {
    head: 'Ended',
    cell: ({ isFailed }) => (isFailed ? 'failed' : 'well'),
    tone: ({ isFailed }) => (isFailed ? 'alarm' : ''),
    isText: true,
  },
];

/** Renders nothing when no task has run. */
export function Durations({ history }: { readonly history: History }) {
  const ran = history.durations('ran');
  const waited = history.durations('waited');
  const longest = history.longestTasks();
  if (ran.length === 0 && waited.length === 0) return null;
  return (
    <section class="two">
      <div>
        <h2>Task durations</h2>
        <p class="note">Of the last half minute, while this page was open.</p>
        <Histogram durations={ran} />
        <h2>Task waits</h2>
        <p class="note">Of the same tasks.</p>
        <Histogram durations={waited} />
      </div>
      <div>
        <h2>Longest tasks</h2>
        <Table
          label="Longest tasks"
          columns={longColumns}
          rows={longest}
          keyOf={(task) => longest.indexOf(task)}
        />
      </div>
    </section>
  );
}

function Histogram({ durations }: { readonly durations: readonly (readonly [number, number])[] }) {
  const most = Math.max(1, ...durations.map(([, count]) => count));
  return (
    <ol class="histogram">
      {durations.map(([upperMs, count]) => (
        <li key={upperMs}>
          <span class="bound">up to {msText(upperMs)}</span>
          <span class="track" aria-hidden="true">
            <span class="histogram-bar" style={{ width: `${(100 * count) / most}%` }} />
          </span>
          <span class="count">{countText(count)}</span>
        </li>
      ))}
    </ol>
  );
}
