// Charts of a program over the last two minutes: lag of its loops, and its tasks.

import { countText, msText } from '../src/observe/format.js';
import { Chart } from './chart.js';
import type { History, Moment } from './history.js';

/** Limit of the lines: the number of colours. */
const maxLoops = 6;

export function Charts({
  history,
  hasPools,
}: {
  readonly history: History;
  readonly hasPools: boolean;
}) {
  const moments = history.momentsWithGaps();
  const seconds = moments.map((moment) => moment.seconds);
  const { worst, others } = worstLoops(moments);
  return (
    <section class="two">
      <Chart
        label="Lag of the event loops, p99"
        seconds={seconds}
        series={worst.map((name) => ({
          name,
          values: moments.map(({ lagMs }) => lagMs.get(name)),
        }))}
        format={msText}
        note={others === 0 ? '' : `The worst ${maxLoops}: ${others} more are in the table.`}
      />
      {hasPools && (
        <Chart
          label="Tasks"
          seconds={seconds}
          series={[
            { name: 'done/s', values: moments.map(({ tasksPerSecond }) => tasksPerSecond) },
            { name: 'waiting', values: moments.map(({ waitingTasks }) => waitingTasks) },
          ]}
          format={countText}
        />
      )}
    </section>
  );
}

/** The loops with the longest lag, in the order of the view, so that they keep their colours. */
function worstLoops(moments: readonly Moment[]): { worst: readonly string[]; others: number } {
  const peaks = new Map<string, number>();
  for (const { lagMs } of moments) {
    for (const [name, ms = 0] of lagMs) peaks.set(name, Math.max(ms, peaks.get(name) ?? 0));
  }
  const byLag = [...peaks.keys()].sort((a, b) => (peaks.get(b) ?? 0) - (peaks.get(a) ?? 0));
  const worst = new Set(byLag.slice(0, maxLoops));
  return {
    worst: [...peaks.keys()].filter((name) => worst.has(name)),
    others: peaks.size - worst.size,
  };
}
