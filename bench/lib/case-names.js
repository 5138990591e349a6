// Every case, in the order in which it is measured and told.

export const caseNames = [
  'round-trip',
  'throughput',
  'objects',
  'closure',
  'payload',
  'cold',
  'memory',
  'idle',
  'fibonacci',
  'lag',
  'smart-tv',
  'small',
  'map',
  'map-in-place',
  'map-skewed',
  'map-channels',
];
/** Measured only when they are named: one takes longer the more cores there are, others need wrk. */
export const namedOnly = [
  'scaling',
  'serve',
  'serve-blocked',
  'serve-mixed',
  'serve-changes',
  'serve-static',
  'serve-cgi',
  'serve-mix',
  'loops',
  'hello-units',
  'cluster',
];
