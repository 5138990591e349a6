// Lanes of the workers of a pool: a label for each worker, and its time line.

import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { countText } from '../src/observe/format.js';
import type { PoolView, WorkerView } from '../src/observe/views/view-types.js';
import type { OnSlice } from './app.js';
import { type History, windowMs } from './history.js';
import { laneHeight, Timeline } from './timeline.js';

interface Props {
  readonly pool: PoolView;
  readonly history: History;
  readonly listeners: Set<OnSlice>;
}

const seconds = windowMs / 1000;

/** An idle pool may have no workers: before its first call, or after a pause. */
export function Lanes({ pool, history, listeners }: Props) {
  if (pool.workers.length === 0) return <p>No worker runs.</p>;
  return (
    <>
      <div class="lanes">
        <WorkerNames workers={pool.workers} />
        <TimelineCanvas pool={pool} history={history} listeners={listeners} />
        <p class="axis" aria-hidden="true">
          <span>{seconds} s ago</span>
          <span>now</span>
        </p>
      </div>
      <p class="key">
        <span class="swatch shade" /> busy <span class="swatch task" /> a long task{' '}
        <span class="swatch failed" /> failed
      </p>
    </>
  );
}

function WorkerNames({ workers }: Pick<PoolView, 'workers'>) {
  return (
    <ol class="lane-names" aria-label="Workers, and their tasks per second">
      {workers.map((worker) => (
        <li key={worker.id} style={{ height: `${laneHeight}px` }}>
          <span>worker {worker.id}</span> <span class="rate">{rateText(worker)}</span>
        </li>
      ))}
    </ol>
  );
}

function rateText({ state, tasksPerSecond, tasksInFlight }: WorkerView): string {
  if (state !== 'ready') return state;
  if (tasksPerSecond === 0 && tasksInFlight > 0) return 'busy';
  return `${countText(tasksPerSecond)}/s`;
}

/** Needs at least one worker at the first render: the drawing code keeps the canvas of that render. */
function TimelineCanvas({ pool, history, listeners }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const key = `${pool.pid}.${pool.thread}`;
  const timeline = useTimeline(canvas, key, history, listeners);
  useShape(canvas, timeline, pool.workers.map(({ id }) => id).join(' '), key);
  return (
    <div class="lane-canvas">
      <canvas
        ref={canvas}
        role="img"
        style={{ height: `${pool.workers.length * laneHeight}px` }}
        aria-label={`Activity of ${pool.workers.length} workers in the last ${seconds} seconds`}
      />
    </div>
  );
}

/** Draws a frame at each animation frame. `key`: the thread whose tasks are drawn. */
function useTimeline(
  canvas: RefObject<HTMLCanvasElement | null>,
  key: string,
  history: History,
  listeners: Set<OnSlice>,
): RefObject<Timeline | null> {
  const timeline = useRef<Timeline>(null);
  useLayoutEffect(() => {
    if (canvas.current === null) return;
    const drawn = new Timeline(canvas.current, () => history.slicesOf(key));
    timeline.current = drawn;
    const onSlice: OnSlice = (of, slice) => {
      if (of === key) drawn.add(slice);
    };
    listeners.add(onSlice);
    let frame = 0;
    const draw = (): void => {
      drawn.draw(performance.now());
      frame = requestAnimationFrame(draw);
    };
    frame = requestAnimationFrame(draw);
    return () => {
      listeners.delete(onSlice);
      cancelAnimationFrame(frame);
    };
  }, [canvas, key, history, listeners]);
  return timeline;
}

/**
 * Fits the canvas to the width of its container and the colours of the page. `ids`: worker ids with spaces.
 */
function useShape(
  canvas: RefObject<HTMLCanvasElement | null>,
  timeline: RefObject<Timeline | null>,
  ids: string,
  key: string,
): void {
  useEffect(() => {
    const element = canvas.current;
    const parent = element?.parentElement;
    if (!element || !parent) return;
    const shape = () => {
      const style = getComputedStyle(element);
      const color = (name: string): string => style.getPropertyValue(name).trim();
      const colors = {
        shade: color('--accent'),
        task: color('--task'),
        failed: color('--alarm'),
      };
      const workers = ids.split(' ').map(Number);
      timeline.current?.shape(workers, parent.clientWidth, devicePixelRatio, colors);
    };
    const resized = new ResizeObserver(shape);
    resized.observe(parent);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', shape);
    return () => {
      resized.disconnect();
      scheme.removeEventListener('change', shape);
    };
  }, [canvas, timeline, ids, key]);
}
