// Line chart of the last two minutes, by uPlot. It fills the width of its container and is redrawn when
// colours change.

import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Series {
  readonly name: string;
  readonly values: readonly (number | undefined)[];
}

interface Props {
  readonly label: string;
  /** Unix time in seconds, ascending. */
  readonly seconds: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** Remark on data that the lines omit. */
  readonly note?: string;
}

const heightPx = 150;
const axisPx = 56;
/** Distance between two times on the axis. */
const timePx = 100;
const timeAxisPx = 30;
const timeSteps = [5, 10, 15, 30, 60];

export function Chart({ label, seconds, series, format, note = '' }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const data: uPlot.AlignedData = [
    [...seconds],
    ...series.map(({ values }) => values.map((value) => value ?? null)),
  ];
  useDrawn(
    place,
    data,
    series.map(({ name }) => name),
    format,
  );
  const now = series
    .slice(0, 4)
    .map(({ name, values }) => `${name} ${textOf(values.at(-1), format)}`)
    .join(', ');
  return (
    <figure class="chart">
      <figcaption>{label}</figcaption>
      <div ref={place} role="img" aria-label={`${label}: now ${now}`} />
      <ul class="legend" aria-hidden="true">
        {series.map(({ name, values }, at) => (
          <li key={name}>
            <span class={`swatch swatch-${at % 6}`} />
            {name} {textOf(values.at(-1), format)}
          </li>
        ))}
      </ul>
      {note !== '' && <p class="note">{note}</p>}
    </figure>
  );
}

function useDrawn(
  place: RefObject<HTMLElement | null>,
  data: uPlot.AlignedData,
  lines: readonly string[],
  format: Props['format'],
): void {
  const names = JSON.stringify(lines); // a stable key for equal lines
  const chart = useRef<uPlot>(undefined);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const make = () => {
      chart.current?.destroy();
      const options = optionsOf(element, JSON.parse(names), format);
      chart.current = new uPlot(options, latest.current, element);
    };
    make();
    const resized = new ResizeObserver(() => {
      chart.current?.setSize({ width: element.clientWidth, height: heightPx });
    });
    resized.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', make);
    return () => {
      resized.disconnect();
      scheme.removeEventListener('change', make);
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [place, names, format]);
  useEffect(() => chart.current?.setData(data));
}

function textOf(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? '-' : format(value);
}

function optionsOf(
  element: HTMLElement,
  names: readonly string[],
  format: (value: number) => string,
): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = { stroke: color('--muted'), grid: { stroke: color('--line'), width: 1 } };
  return {
    width: element.clientWidth,
    height: heightPx,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      {
        ...axis,
        ticks: { show: false },
        size: timeAxisPx,
        space: timePx,
        incrs: timeSteps,
        values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleTimeString()),
      },
      {
        ...axis,
        size: axisPx,
        ticks: { show: false },
        values: (_, ticks) => ticks.map((tick) => format(tick)),
      },
    ],
    series: [
      {},
      ...names.map((label, at) => ({
        label,
        stroke: color(`--series-${at % 6}`),
        width: 1.5,
        points: { show: false },
      })),
    ],
  };
}
