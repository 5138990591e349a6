// One experiment on the page of evidence.

import type { Chart } from './chart.js';
import type { Stored } from './results.js';

export interface Section {
  /** Name of its picture's file. */
  readonly name: string;
  readonly title: string;
  /** Case with its results. */
  readonly from: string;
  /** Result of the source, with its figure. */
  readonly source: string;
  /** Result here, and the reason for a difference. */
  readonly ours: (stored: Stored) => string;
  readonly chart: (stored: Stored) => Chart;
}
