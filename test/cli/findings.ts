// Findings of `manycore doctor`, for tests.

import type { Finding } from '../../src/cli/commands/doctor/doctor-report.js';

/** [what it is called, its state], of those that are not well. */
export function unwell(findings: readonly Finding[]): string[] {
  return findings
    .filter(({ state }) => state !== 'ok' && state !== 'info')
    .map(({ what, state }) => `${what}: ${state}`);
}
