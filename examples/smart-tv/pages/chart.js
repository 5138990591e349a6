// The live chart: a dot for each answered press over the last seconds. Its height is the response time on a
// logarithmic scale, its colour the mode; visitors' presses are rings.
import uPlot from './uplot.js';

const spanSeconds = 45;
const redrawEveryMs = 200;

export class LiveChart {
  #modes;
  #plot;
  #samples = []; // [ms since 1970 by the server's clock, response ms, mode, who], oldest first
  #clockAheadMs = Number.POSITIVE_INFINITY; // of this device, against the server
  #timer;
  #resizer;

  /** Draws into `element` and follows its size; a series for each of `modes`. */
  constructor(element, modes) {
    this.#modes = modes;
    const sizeOf = () => ({ width: element.clientWidth, height: element.clientHeight });
    this.#plot = new uPlot({ ...settings(modes), ...sizeOf() }, this.#data(0), element);
    this.#resizer = new ResizeObserver(() => this.#plot.setSize(sizeOf()));
    this.#resizer.observe(element);
    this.#timer = setInterval(() => this.#redraw(), redrawEveryMs);
  }

  /** `nowMs` is the server's clock when it sent the samples. */
  add(nowMs, samples) {
    // The clocks differ, and messages from a busy server are late: the quickest one is the most precise.
    this.#clockAheadMs = Math.min(this.#clockAheadMs, Date.now() - nowMs);
    this.#samples.push(...samples);
    this.#samples.sort((a, b) => a[0] - b[0]);
  }

  destroy() {
    clearInterval(this.#timer);
    this.#resizer.disconnect();
    this.#plot.destroy();
  }

  #redraw() {
    if (this.#samples.length === 0) return;
    const nowMs = Date.now() - this.#clockAheadMs;
    const firstMs = nowMs - spanSeconds * 1000;
    this.#samples = this.#samples.filter(([atMs]) => atMs >= firstMs);
    this.#plot.setData(this.#data(nowMs));
  }

  /** Columns: seconds before now, a series for each mode, the visitors. */
  #data(nowMs) {
    const seconds = this.#samples.map(([atMs]) => (atMs - nowMs) / 1000);
    const pick = (isIn) => this.#samples.map((sample) => (isIn(sample) ? sample[1] : null));
    return [
      seconds,
      ...this.#modes.map((mode) => pick(([, , of, who]) => of === mode && who === 'thumb')),
      pick(([, , , who]) => who === 'visitor'),
    ];
  }
}

function settings(modes) {
  const color = (name) => () => resolveColor(name);
  const axis = {
    stroke: color('--faint'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  };
  const dots = (stroke, size, fill) => ({
    paths: () => null,
    points: { show: true, size, stroke, fill, width: fill === 'transparent' ? 2 : 0 },
  });
  return {
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: [-spanSeconds, 0] },
      y: { distr: 3, log: 10, range: (_plot, least, most) => wholePowers(least, most) },
    },
    axes: [
      {
        ...axis,
        values: (_plot, ticks) => ticks.map((tick) => (tick === 0 ? 'now' : `${tick} s`)),
      },
      {
        ...axis,
        size: 64,
        splits: (_plot, _axis, low, high) => powersOfTen(low, high),
        values: (_plot, ticks) => ticks.map((tick) => `${tick} ms`),
      },
    ],
    series: [
      {},
      ...modes.map((mode) => dots(color(`--${mode}`), 4, color(`--${mode}`))),
      dots(color('--ink'), 10, 'transparent'),
    ],
  };
}

function wholePowers(least, most) {
  const low = Math.min(1, least ?? 1);
  const high = Math.max(100, most ?? 100);
  return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high))];
}

function powersOfTen(low, high) {
  const count = Math.round(Math.log10(high / low)) + 1;
  return Array.from({ length: count }, (_, i) => Number((low * 10 ** i).toPrecision(1)));
}

/**
 * A canvas resolves no variables and no light-dark(): returns the colour that the browser computes for them.
 */
function resolveColor(name) {
  const probe = document.body.appendChild(document.createElement('i'));
  probe.style.color = `var(${name})`;
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}
