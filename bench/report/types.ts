// What a case declares, what a run of it measured, and what is stored and printed.

/** One kind of number that a case measures. */
export interface Figure {
  readonly says: string;
  readonly unit: string;
  readonly better: 'lower' | 'higher' | 'neither';
}

/** Whose number, taken where. */
export interface Side {
  readonly setting: string;
  readonly contender: string;
}

/**
 * A claim that can be false. With `against` the figure of `of` is divided by that of the best of
 * `against` (the other way round for `timesFaster`); without, the figure itself is compared.
 */
export interface Bar {
  readonly says: string;
  readonly figure: string;
  readonly of: Side;
  readonly against?: readonly Side[];
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly timesFaster?: number;
  /** Both sides shared each round: the median of the rounds' ratios counts, not the ratio of the medians. */
  readonly isPaired?: boolean | undefined;
  /** Hoped for, not promised: a miss is shown all the same. */
  readonly isAim?: boolean;
}

/** Figures by name, `[round]`; `null` where the round failed. */
export type Samples = Readonly<Record<string, readonly (number | null)[]>>;

/** A round that gave no numbers, counted from 1, and why. */
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
 * `met`: the ratio of the medians reaches the bar, or the median of the ratios where they are paired. `missed`: it does not, but at least one round
 * did, so noise could be the reason. `refuted`: no round reached it. `unmeasured`: a side has no
 * number.
 */
export type Verdict = 'met' | 'missed' | 'refuted' | 'unmeasured';

export interface Judged {
  readonly bar: Bar;
  readonly verdict: Verdict;
  /** What is compared with the bar; absent when unmeasured. */
  readonly reached?: Spread;
  readonly mine?: Spread;
  readonly rival?: Side;
  readonly theirs?: Spread;
}
