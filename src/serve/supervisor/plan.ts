// Decides how a server grows and shrinks with its load. Pure: the supervisor calls it once a second with
// figures of the scoreboard, and applies the result.
//
// Growth is Apache's (prefork.c, perform_idle_server_maintenance): as long as too few units are spare,
// each tick starts twice as many as the one before. Shrinking is uWSGI's (cheaper busyness): one at a
// time, only after some quiet ticks, and after more of them when a unit that was ended had to be
// started again soon. A unit is what the plan grows by: a process, or under `perchild` a loop.

export interface PlanLimits {
  /** Units at least and at most. */
  readonly min: number;
  readonly max: number;
  /** Range of spare units: below it units are started, above it one is ended. */
  readonly minSpare: number;
  readonly maxSpare: number;
}

/** Target utilization of a unit: above it new work would wait. */
const wantedUse = 0.7;

/** A unit below this utilization counts as spare: it gets a request now and then. */
const littleUse = 0.1;

/** Number of spare units, when `busy` units' worth of work is done. */
export function spareUnits(units: number, busy: number): number {
  return units - Math.max(0, Math.ceil(busy / wantedUse - littleUse));
}

/** The load at a tick. */
export interface PlanLoad {
  /** Units that serve or start; not those that drain. */
  readonly units: number;
  /** Spare units, including those that start. */
  readonly spare: number;
  /** True: work waits, because no unit takes connections or has time; the need is unknown. */
  readonly hasBacklog: boolean;
}

export interface PlanState {
  /** Maximum number of starts at the next tick. */
  readonly rate: number;
  /** Consecutive ticks with too many spare units. */
  readonly quietTicks: number;
  /** Quiet ticks before one unit is ended. */
  readonly patienceTicks: number;
  /** Ticks since a unit was ended. */
  readonly ticksSinceEnd: number;
}

/** Units to start when positive, to end when negative. */
export interface PlanStep {
  readonly change: number;
  readonly state: PlanState;
}

/** Apache's MAX_SPAWN_RATE. */
const maxRate = 32;
const firstPatienceTicks = 10;
const maxPatienceTicks = 160;

export const firstPlanState: PlanState = Object.freeze({
  rate: 1,
  quietTicks: 0,
  patienceTicks: firstPatienceTicks,
  ticksSinceEnd: Infinity,
});

/** Decides one tick. */
export function planStep(state: PlanState, load: PlanLoad, limits: PlanLimits): PlanStep {
  const { units, spare, hasBacklog } = load;
  const ticksSinceEnd = state.ticksSinceEnd + 1;
  const isShort = units < limits.min || spare < limits.minSpare || hasBacklog;
  if (isShort && units < limits.max) {
    const change = Math.min(Math.max(state.rate, limits.min - units), limits.max - units);
    // A unit was ended too early: the next one is ended later.
    const isRegret = ticksSinceEnd <= state.patienceTicks;
    const patienceTicks = isRegret
      ? Math.min(maxPatienceTicks, 2 * state.patienceTicks)
      : state.patienceTicks;
    const rate = Math.min(maxRate, 2 * state.rate);
    return { change, state: { rate, quietTicks: 0, patienceTicks, ticksSinceEnd } };
  }
  if (units > limits.max) return { change: -1, state: { ...state, rate: 1, ticksSinceEnd } };
  const isQuiet = spare > limits.maxSpare && units > limits.min && !hasBacklog;
  const quietTicks = isQuiet ? state.quietTicks + 1 : 0;
  const isEnding = quietTicks >= state.patienceTicks;
  const hasCalmed = ticksSinceEnd > maxPatienceTicks;
  return {
    change: isEnding ? -1 : 0,
    state: {
      rate: 1,
      quietTicks: isEnding ? 0 : quietTicks,
      patienceTicks: hasCalmed ? firstPatienceTicks : state.patienceTicks,
      ticksSinceEnd: isEnding ? 0 : ticksSinceEnd,
    },
  };
}

/** A plan with its state. */
export class Elastic {
  limits: PlanLimits;
  #state = firstPlanState;

  constructor(limits: PlanLimits) {
    this.limits = limits;
  }

  /** Units to start when positive, to end when negative. */
  step(load: PlanLoad): number {
    const { change, state } = planStep(this.#state, load, this.limits);
    this.#state = state;
    return change;
  }
}
