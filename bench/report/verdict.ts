// Judges bars. The rival is the best one by the median of the same figure in the same run. The verdict is the
// median's, and the rounds give its certainty (see `Verdict`). Contenders that shared their rounds are judged
// by the ratios of the rounds: a disturbance in one of them slows both sides.
import { roundRatios, spreadOf } from './stats.js';
import type { Bar, Figure, Judged, Measured, Side, Spread, Verdict } from './types.js';

export function judge(
  bar: Bar,
  figures: Readonly<Record<string, Figure>>,
  measured: readonly Measured[],
): Judged {
  const figure = figures[bar.figure];
  if (figure === undefined) throw new Error(`bar "${bar.says}" has no figure ${bar.figure}`);
  const own = samplesOf(bar.of, bar.figure, measured);
  const mine = spreadOf(own);
  if (bar.against === undefined) {
    if (mine === undefined) return { bar, verdict: 'unmeasured' };
    return { bar, verdict: verdictOf(bar, mine.median, own), reached: mine, mine };
  }
  const rival = bestOf(bar.against, bar.figure, figure, measured);
  const other = rival && samplesOf(rival, bar.figure, measured);
  const theirs = spreadOf(other);
  if (mine === undefined || rival === undefined || theirs === undefined) {
    return {
      bar,
      verdict: 'unmeasured',
      ...(mine && { mine }),
      ...(rival && theirs && { rival, theirs }),
    };
  }
  const isFaster = bar.timesFaster !== undefined;
  const rounds = isFaster ? roundRatios(other, own) : roundRatios(own, other);
  const ofMedians = isFaster ? theirs.median / mine.median : mine.median / theirs.median;
  const ofRounds = spreadOf(rounds) ?? { min: Number.NaN, max: Number.NaN, median: Number.NaN };
  const reached: Spread = bar.isPaired ? ofRounds : { ...ofRounds, median: ofMedians };
  return { bar, verdict: verdictOf(bar, reached.median, rounds), reached, mine, rival, theirs };
}

/** True: `value` (a ratio, or the figure itself) reaches the bar. */
function reaches(bar: Bar, value: number): boolean {
  if (bar.atMost !== undefined) return value <= bar.atMost;
  return value >= (bar.atLeast ?? bar.timesFaster ?? Number.POSITIVE_INFINITY);
}

function verdictOf(bar: Bar, middle: number, rounds: readonly (number | null)[]): Verdict {
  if (reaches(bar, middle)) return 'met';
  return rounds.some((value) => value !== null && reaches(bar, value)) ? 'missed' : 'refuted';
}

function samplesOf(
  side: Side,
  figure: string,
  measured: readonly Measured[],
): readonly (number | null)[] {
  const found = measured.find(
    (one) => one.setting === side.setting && one.contender === side.contender,
  );
  return found?.samples[figure] ?? [];
}

/** The side with the best median, `undefined` when none was measured. */
function bestOf(
  sides: readonly Side[],
  name: string,
  figure: Figure,
  measured: readonly Measured[],
): Side | undefined {
  const sign = figure.better === 'higher' ? -1 : 1;
  let best: Side | undefined;
  let bestValue = Number.POSITIVE_INFINITY;
  for (const side of sides) {
    const spread = spreadOf(samplesOf(side, name, measured));
    if (spread !== undefined && sign * spread.median < bestValue) {
      best = side;
      bestValue = sign * spread.median;
    }
  }
  return best;
}
