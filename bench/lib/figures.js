// Figures and lists of runs that several cases share.

export const micros = (says) => ({ says, unit: 'µs', better: 'lower' });
export const millis = (says) => ({ says, unit: 'ms', better: 'lower' });
export const perSecond = (says) => ({ says, unit: '/s', better: 'higher' });
export const counted = (says, unit) => ({ says, unit, better: 'lower' });

/** Every contender in one setting. */
export const runsOf = (setting, contenders) =>
  contenders.map((contender) => ({ setting, contender }));
