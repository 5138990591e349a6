// Parses the output of load generators: wrk's report, autocannon's JSON, and a JSON line of other tools.

export interface LoadResult {
  /** Requests with a good answer. */
  readonly requests: number;
  readonly errors: number;
  /** Duration of the load, where it is reported. */
  readonly seconds?: number | undefined;
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
}

/** Returns `undefined` for output in no known format. */
export function parseLoadOutput(text: string): LoadResult | undefined {
  return parseWrk(text) ?? parseJson(text);
}

const unitsMs: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };
const unitsSeconds: Readonly<Record<string, number>> = {
  us: 1e-6,
  ms: 0.001,
  s: 1,
  m: 60,
  h: 3600,
};

function parseWrk(text: string): LoadResult | undefined {
  const [, count, time, unit = ''] = /(\d+) requests in ([\d.]+)(us|ms|s|m|h)\b/.exec(text) ?? [];
  if (count === undefined) return undefined;
  const sockets = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text);
  const unwanted = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0);
  const lost = (sockets ?? []).slice(1).reduce((sum, each) => sum + Number(each), 0);
  return {
    requests: Number(count) - unwanted,
    errors: unwanted + lost,
    seconds: Number(time) * (unitsSeconds[unit] ?? 1),
    p50Ms: wrkPercentile(text, '50%'),
    p99Ms: wrkPercentile(text, '99%'),
  };
}

/** Returns a percentile of wrk, which it prints under `--latency` only. */
function wrkPercentile(text: string, name: string): number | undefined {
  const [, value, unit = ''] =
    new RegExp(`^\\s+${name}\\s+([\\d.]+)(us|ms|s|m)$`, 'm').exec(text) ?? [];
  return value === undefined ? undefined : Number(value) * (unitsMs[unit] ?? 1);
}

/** Parses the last line that is an object, or the whole text. */
function parseJson(text: string): LoadResult | undefined {
  const lines = text.trim().split('\n').reverse();
  for (const line of [...lines.filter((each) => each.startsWith('{')), text]) {
    try {
      return parseAutocannon(JSON.parse(line)) ?? parseResult(JSON.parse(line));
    } catch {
      // other output beside the result
    }
  }
  return undefined;
}

function parseAutocannon(value: unknown): LoadResult | undefined {
  const report = new Map<string, unknown>(Object.entries(Object(value)));
  const requests = new Map<string, unknown>(Object.entries(Object(report.get('requests'))));
  const latency = new Map<string, unknown>(Object.entries(Object(report.get('latency'))));
  const total = numberOf(requests.get('total'));
  if (total === undefined) return undefined;
  const unwanted = numberOf(report.get('non2xx')) ?? 0;
  return {
    requests: total - unwanted,
    errors: unwanted + (numberOf(report.get('errors')) ?? 0),
    seconds: numberOf(report.get('duration')),
    p50Ms: numberOf(latency.get('p50')),
    p99Ms: numberOf(latency.get('p99')),
  };
}

/** Parses the result of a script, or JSON of a program. Returns `undefined` without a count of requests. */
export function parseResult(value: unknown): LoadResult | undefined {
  const fields = new Map<string, unknown>(Object.entries(Object(value)));
  const requests = numberOf(fields.get('requests'));
  if (requests === undefined) return undefined;
  return {
    requests,
    errors: numberOf(fields.get('errors')) ?? 0,
    seconds: numberOf(fields.get('seconds')),
    p50Ms: numberOf(fields.get('p50Ms')),
    p99Ms: numberOf(fields.get('p99Ms')),
  };
}

/** Returns non-negative numbers only. */
function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : undefined;
}
