// Types of the declaration of a case, of the results of a run, and of their stored and printed form.

/** One kind of number that a case measures. */
export interface Figure {
  readonly says: string;
  readonly unit: string;
  readonly better: 'lower' | 'higher' | 'neither';
}

/** Origin of a number: a contender in a setting. */
export interface Side {
  readonly setting: string;
  readonly contender: string;
}

/**
 * A claim that can be false. With `against`, the figure of `of` is divided by that of the best of `against`
 * (the other way round for `timesFaster`). Without, the figure itself is compared.
 */
export interface Bar {
  readonly says: string;
  readonly figure: string;
  readonly of: Side;
  readonly against?: readonly Side[];
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly timesFaster?: number;
  /** Other limits for other lines of Node, by the number of the line. */
  readonly onLines?: Readonly<Record<number, Pick<Bar, 'atMost' | 'atLeast' | 'timesFaster'>>>;
  /**
   * True: both sides shared each round, so the median of the rounds' ratios counts, not the ratio of the
   * medians.
   */
  readonly isPaired?: boolean | undefined;
  /** True: an aim, not a promise; a miss is shown all the same. */
  readonly isAim?: boolean;
}

/** Figures by name, `[round]`; `null` where the round failed. */
export type Samples = Readonly<Record<string, readonly (number | null)[]>>;

/** A round without numbers, counted from 1, and its cause. */
export interface Failure {
  readonly round: number;
  readonly says: string;
}

export interface Measured extends Side {
  readonly samples: Samples;
  readonly failures: readonly Failure[];
}

/** Median and range over the rounds that succeeded. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/**
 * `met`: the ratio of the medians reaches the bar, or the median of the ratios where they are paired.
 * `missed`: it does not, but at least one round did, so noise could be the reason. `refuted`: no round
 * reached it. `unmeasured`: a side has no number.
 */
export type Verdict = 'met' | 'missed' | 'refuted' | 'unmeasured';

export interface Judged {
  readonly bar: Bar;
  readonly verdict: Verdict;
  /** Value compared with the bar; absent when unmeasured. */
  readonly reached?: Spread;
  readonly mine?: Spread;
  readonly rival?: Side;
  readonly theirs?: Spread;
}
