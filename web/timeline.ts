// Time line of a pool's workers on a canvas: a lane for each worker, time from left to right. Each slice is
// drawn once, onto a second canvas that is used as a ring; a frame only copies from it and redraws no task
// (bench/cases/dashboard.js).
// A slice shades its part of a lane by the busy share of the worker; the longest tasks are drawn over it one
// by one, running ones up to the end of the slice.

import type { TaskSpan } from '../src/agent/stats.js';
import { type PlacedSlice, windowMs } from './history.js';

export const laneHeight = 14;
const laneGap = 2;
/** Age of the right edge: slices take a while to arrive. */
const delayMs = 300;
/** Length of the ring beyond the window. */
const spareMs = 1000;
const faintest = 0.12;

export interface Colors {
  readonly shade: string;
  readonly task: string;
  readonly failed: string;
}

export class Timeline {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #ring = document.createElement('canvas');
  readonly #ringContext: CanvasRenderingContext2D;
  readonly #slices: () => readonly PlacedSlice[];
  #colors: Colors = { shade: 'gray', task: 'gray', failed: 'red' };
  /** Lane by worker. */
  #lanes = new Map<number, number>();
  #scale = 1;
  #columnsPerMs = 0;
  /** End of the cleared columns of the ring. */
  #clearedTo = 0;

  /** `slices`: returns those of the window, for a full redraw. */
  constructor(canvas: HTMLCanvasElement, slices: () => readonly PlacedSlice[]) {
    this.#canvas = canvas;
    this.#slices = slices;
    const context = canvas.getContext('2d');
    const ringContext = this.#ring.getContext('2d');
    if (context === null || ringContext === null) throw new Error('the browser draws no canvas');
    this.#context = context;
    this.#ringContext = ringContext;
  }

  /** Redraws everything; `width` in CSS pixels. */
  shape(workers: readonly number[], width: number, scale: number, colors: Colors): void {
    this.#lanes = new Map(workers.map((worker, lane) => [worker, lane]));
    this.#scale = scale;
    this.#colors = colors;
    const height = Math.max(1, Math.round(workers.length * laneHeight * scale));
    this.#canvas.width = Math.max(1, Math.round(width * scale));
    this.#canvas.height = height;
    this.#columnsPerMs = this.#canvas.width / windowMs;
    this.#ring.width = Math.ceil((windowMs + spareMs) * this.#columnsPerMs);
    this.#ring.height = height;
    this.#clearedTo = this.#columnOf(performance.now());
    for (const each of this.#slices()) this.add(each);
  }

  add({ fromMs, toMs, offsetMs, slice }: PlacedSlice): void {
    this.#clear(toMs);
    const context = this.#ringContext;
    for (const { worker, failed, busyMs } of slice.workers) {
      const lane = this.#lanes.get(worker);
      if (lane === undefined) continue;
      const share = Math.min(1, busyMs / (toMs - fromMs));
      context.globalAlpha = faintest + share * (0.6 - faintest);
      this.#fill(lane, fromMs, toMs, this.#colors.shade, 1);
      context.globalAlpha = 1;
      if (failed > 0) this.#fill(lane, fromMs, toMs, this.#colors.failed, 0.2);
    }
    for (const span of slice.tasks) this.#drawTask(span, offsetMs);
    for (const span of slice.running) this.#drawTask(span, offsetMs);
  }

  #drawTask({ worker, startMs, endMs, isFailed }: TaskSpan, offsetMs: number): void {
    const lane = this.#lanes.get(worker);
    if (lane === undefined) return;
    const { task, failed } = this.#colors;
    this.#fill(lane, startMs + offsetMs, endMs + offsetMs, isFailed ? failed : task, 0.7);
  }

  /** `part`: share of the lane's height, from the bottom. */
  #fill(lane: number, fromMs: number, toMs: number, color: string, part: number): void {
    const context = this.#ringContext;
    const oldest = this.#clearedTo - this.#ring.width + 1;
    const from = Math.max(0, oldest, this.#columnOf(fromMs));
    const to = Math.max(from + 1, this.#columnOf(toMs));
    const full = (laneHeight - laneGap) * this.#scale;
    const height = Math.max(1, Math.round(full * part));
    const top = Math.round(lane * laneHeight * this.#scale + full - height);
    context.fillStyle = color;
    const at = from % this.#ring.width;
    const length = to - from;
    const first = Math.min(length, this.#ring.width - at);
    context.fillRect(at, top, first, height);
    if (length > first) context.fillRect(0, top, length - first, height);
  }

  /** Clears the ring up to this time. */
  #clear(toMs: number): void {
    const to = this.#columnOf(toMs);
    const { width, height } = this.#ring;
    const from = Math.max(this.#clearedTo + 1, to - width + 1);
    if (to < from) return;
    const at = from % width;
    const length = to - from + 1;
    const first = Math.min(length, width - at);
    this.#ringContext.clearRect(at, 0, first, height);
    if (length > first) this.#ringContext.clearRect(0, 0, length - first, height);
    this.#clearedTo = to;
  }

  #columnOf(ms: number): number {
    return Math.floor(ms * this.#columnsPerMs);
  }

  /** Draws one frame. */
  draw(nowMs: number): void {
    this.#clear(nowMs);
    const { width, height } = this.#canvas;
    this.#context.clearRect(0, 0, width, height);
    const right = this.#columnOf(nowMs - delayMs);
    const left = right - width + 1;
    // There is no data from before the page was opened.
    const shown = Math.min(width, width + left);
    const at = Math.max(0, left) % this.#ring.width;
    const first = Math.min(shown, this.#ring.width - at);
    this.#copy(at, width - shown, first);
    this.#copy(0, width - shown + first, shown - first);
  }

  #copy(from: number, to: number, width: number): void {
    const { height } = this.#ring;
    if (width > 0) {
      this.#context.drawImage(this.#ring, from, 0, width, height, to, 0, width, height);
    }
  }
}
