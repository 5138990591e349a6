// Counts of durations for `stats()`. `node:perf_hooks` has an HDR histogram, but one `record` there crosses
// into C++ and costs more than the whole hand-over of a short task (bench/cases/throughput.js); this one is
// an increment. Buckets are log-linear as in HDR histograms: 16 to each power of two, so a reported value
// is within 6 % of the true one.

const subBuckets = 16;
const subBucketBits = 4;
/** Durations are counted in units of 100 ns, up to 2^40 units (30 hours). */
const unitsPerMs = 10_000;
const bucketCount = subBuckets * 40;
/** Bounds of the buckets for sums over time or over pools, as in Prometheus. */
const boundsMs = [0.1, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 30_000] as const;

export interface HistogramSummary {
  readonly count: number;
  readonly sumMs: number;
  readonly meanMs: number;
  /** The standard deviation. */
  readonly deviationMs: number;
  readonly minMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Cumulative counts, within the 6 %: `[atMostMs, count]`. */
  readonly buckets: readonly (readonly [number, number])[];
}

export class Histogram {
  readonly #counts = new Uint32Array(bucketCount);
  #count = 0;
  #sumMs = 0;
  #squares = 0;
  #minMs = Infinity;
  #maxMs = 0;
  /** Samples from before the last `reset`. */
  #former: Histogram | undefined;

  record(durationMs: number): void {
    this.#count += 1;
    this.#sumMs += durationMs;
    this.#squares += durationMs * durationMs;
    if (durationMs < this.#minMs) this.#minMs = durationMs;
    if (durationMs > this.#maxMs) this.#maxMs = durationMs;
    const index = bucketOf(durationMs * unitsPerMs);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  /** Starts new counts; `total` goes on. */
  reset(): void {
    this.#former ??= new Histogram();
    this.#former.#add(this);
    this.#counts.fill(0);
    this.#count = 0;
    this.#sumMs = 0;
    this.#squares = 0;
    this.#minMs = Infinity;
    this.#maxMs = 0;
  }

  #add(other: Histogram): void {
    for (const [index, count] of other.#counts.entries()) {
      this.#counts[index] = (this.#counts[index] ?? 0) + count;
    }
    this.#count += other.#count;
    this.#sumMs += other.#sumMs;
    this.#squares += other.#squares;
    this.#minMs = Math.min(this.#minMs, other.#minMs);
    this.#maxMs = Math.max(this.#maxMs, other.#maxMs);
  }

  /** Returns the summary of all samples since the beginning, from which rates are computed. */
  total(): HistogramSummary {
    if (this.#former === undefined) return this.summary();
    const all = new Histogram();
    all.#add(this.#former);
    all.#add(this);
    return all.summary();
  }

  /** Returns the summary since the last `reset`. All zero when nothing was recorded. */
  summary(): HistogramSummary {
    const meanMs = this.#count === 0 ? 0 : this.#sumMs / this.#count;
    const meanSquare = this.#count === 0 ? 0 : this.#squares / this.#count;
    return {
      count: this.#count,
      sumMs: this.#sumMs,
      meanMs,
      // Rounding may give a negative variance when all samples are equal.
      deviationMs: Math.sqrt(Math.max(0, meanSquare - meanMs * meanMs)),
      minMs: this.#count === 0 ? 0 : this.#minMs,
      p50Ms: this.#percentile(0.5),
      p95Ms: this.#percentile(0.95),
      p99Ms: this.#percentile(0.99),
      maxMs: this.#maxMs,
      buckets: this.#buckets(),
    };
  }

  #buckets(): [number, number][] {
    let index = 0;
    let count = 0;
    return boundsMs.map((ms) => {
      for (; index < bucketCount && upperBound(index) <= ms * unitsPerMs; index += 1) {
        count += this.#counts[index] ?? 0;
      }
      return [ms, count];
    });
  }

  #percentile(fraction: number): number {
    const rank = Math.ceil(this.#count * fraction);
    if (rank === 0) return 0;
    let seen = 0;
    for (let index = 0; index < bucketCount; index += 1) {
      seen += this.#counts[index] ?? 0;
      if (seen >= rank) return Math.min(this.#maxMs, upperBound(index) / unitsPerMs);
    }
    return this.#maxMs;
  }
}

function bucketOf(units: number): number {
  const whole = Math.floor(units);
  if (whole < subBuckets) return Math.max(0, whole);
  const exponent = whole < 2 ** 31 ? 31 - Math.clz32(whole) : Math.floor(Math.log2(whole));
  const within = Math.floor(whole / 2 ** (exponent - subBucketBits)) - subBuckets;
  return Math.min(bucketCount - 1, (exponent - subBucketBits + 1) * subBuckets + within);
}

/** The largest value that falls into a bucket, in units. */
function upperBound(index: number): number {
  if (index < subBuckets) return index;
  const exponent = Math.floor(index / subBuckets) + subBucketBits - 1;
  const within = index % subBuckets;
  return (subBuckets + within + 1) * 2 ** (exponent - subBucketBits);
}
