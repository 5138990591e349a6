// How long tasks of a program waited and ran in the last half minute, and which were the longest.

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

/** Nothing where no task has run. */
export function Durations({ history }: { readonly history: History }) {
  const ran = history.durations('ran');
  const waited = history.durations('waited');
  const longest = history.longestTasks();
  if (ran.length === 0 && waited.length === 0) return null;
  return (
    <section class="two">
      <div>
        <h2>How long tasks ran</h2>
        <Histogram durations={ran} />
        <h2>How long they waited</h2>
        <Histogram durations={waited} />
      </div>
      <div>
        <h2>The longest</h2>
        <Table
          label="The longest tasks"
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
