// Measures the response time of the play button in one mode after the other, under the same load.
import { summarize } from './stats.js';

// Presses before the ones that count: connections open, the player and the workers start, code warms up.
const warmUpSeconds = 1;

/**
 * Resolves to one result a mode, in order:
 * `{ mode, presses, p50Ms, p95Ms, p99Ms, maxMs, decodesPerSecond, leftOut, failed, failedDecodes,
 *    lagP95Ms, responsesMs }`.
 * `lagP95Ms`: lateness of the thumb itself, a share of each response. `onPhase(text, mode)` receives the
 * progress, `onSamples(mode, samples)` each answer that counts. Stops between two steps when `signal` aborts,
 * and then rejects with its reason.
 */
export async function runStudy({ thumb, decoding, options, signal, onPhase, onSamples, onResult }) {
  const results = [];
  const { seconds, ratePerSecond } = options;
  for (const mode of options.modes) {
    onPhase('warming up', mode);
    await decoding.use(mode);
    signal.throwIfAborted();
    await thumb.press({ ratePerSecond, seconds: Math.min(warmUpSeconds, seconds) }, () => {});
    signal.throwIfAborted();

    onPhase('measuring', mode);
    const responsesMs = [];
    decoding.takeCounts();
    const startMs = performance.now();
    // The same presses for every mode: another seed would be another set of press times.
    const { failed, lagP95Ms } = await thumb.press(
      { ratePerSecond, seconds, seed: 7 },
      (samples) => {
        for (const [, responseMs] of samples) responsesMs.push(responseMs);
        onSamples(mode, samples);
      },
    );
    const elapsedSeconds = (performance.now() - startMs) / 1000;
    const { decoded, leftOut, failed: failedDecodes } = decoding.takeCounts();
    signal.throwIfAborted();

    const decodesPerSecond = decoded / elapsedSeconds;
    const result = {
      mode,
      ...summarize(responsesMs),
      ...{ decodesPerSecond, leftOut, failed, failedDecodes, lagP95Ms, responsesMs },
    };
    results.push(result);
    onResult(result);
  }
  await decoding.use('idle');
  return results;
}
