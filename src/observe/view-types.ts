// What people see of the programs that run: plain data, the same for the terminal and the page. What is
// `undefined` cannot be said yet (a rate needs two looks) or not here (CPU of a worker that is a thread).

export interface ProgramView {
  readonly pid: number;
  readonly title: string;
  readonly summary: SummaryView;
  readonly threads: readonly ThreadView[];
  readonly pools: readonly PoolView[];
  readonly servers: readonly ServerView[];
  readonly buses: readonly BusView[];
}

/** Of a whole program: sums, and of its loops the worst. Those of workers may be busy: they are not among them. */
export interface SummaryView {
  readonly loops: number;
  /** Of its busiest loop, 0 to 1. */
  readonly utilization: number | undefined;
  readonly lagP99Ms: number | undefined;
  /** But for those that may block. */
  readonly silentThreads: number;
  readonly workers: number;
  readonly busyWorkers: number;
  readonly waitingTasks: number;
  readonly tasksPerSecond: number | undefined;
  readonly requestsPerSecond: number | undefined;
  /** Workers, and processes of servers, that ended without having been asked to, since the start. */
  readonly lost: number;
  /** Of all its processes: 1 is one core. */
  readonly cpuShare: number | undefined;
  readonly rssBytes: number | undefined;
}

export interface ThreadView {
  readonly pid: number;
  readonly thread: number;
  /**
   * `main`, `thread 2`, in a server `loop 0.1` (its process and its number there), or `worker 3` where one has
   * pools of its own.
   */
  readonly role: string;
  /** It did not answer in time: blocked, or stopped. Of its loop nothing is known then. */
  readonly isSilent: boolean;
  readonly utilization: number | undefined;
  readonly lagP50Ms: number | undefined;
  readonly lagP99Ms: number | undefined;
  readonly lagMaxMs: number | undefined;
  readonly heapUsedBytes: number | undefined;
  readonly heapLimitBytes: number | undefined;
  /** The share of time in which it collected garbage, 0 to 1. */
  readonly gcShare: number | undefined;
  /** The longest pause since somebody watches. */
  readonly gcMaxMs: number | undefined;
  /** Of its process; in the row of the first of its threads alone. */
  readonly rssBytes: number | undefined;
  readonly cpuShare: number | undefined;
}

export interface PoolView {
  readonly pid: number;
  readonly thread: number;
  readonly id: number;
  /** Its thread does not answer: all of it is as it was before, and there are no rates. */
  readonly isSilent: boolean;
  readonly channel: string;
  readonly workers: readonly WorkerView[];
  readonly busyWorkers: number;
  readonly waitingTasks: number;
  readonly runningTasks: number;
  readonly tasksPerSecond: number | undefined;
  readonly failedPerSecond: number | undefined;
  /** Since the pool was opened. */
  readonly waitP50Ms: number;
  readonly waitP99Ms: number;
  readonly runP50Ms: number;
  readonly runP99Ms: number;
  readonly failedTasks: number;
  readonly startedWorkers: number;
  /** Workers that have ended, whatever the reason was. */
  readonly endedWorkers: number;
  /** Of those, the ones that were not asked to. */
  readonly lostWorkers: number;
}

export interface WorkerView {
  readonly id: number;
  readonly kind: string;
  /** `undefined` for one that is a thread, or not here. */
  readonly pid: number | undefined;
  readonly state: string;
  readonly tasksInFlight: number;
  readonly tasksDone: number;
  readonly tasksPerSecond: number | undefined;
  /** Of its process. */
  readonly cpuShare: number | undefined;
  readonly rssBytes: number | undefined;
  /** As it told last: one that is at work tells when its loop comes to it. */
  readonly heapUsedBytes: number | undefined;
  readonly heapLimitBytes: number | undefined;
  /** The share of time in which it collected garbage, 0 to 1; between two looks at which it has told. */
  readonly gcShare: number | undefined;
}

export interface ServerView {
  /** The same at each look, and of no other. */
  readonly key: string;
  /** The path of its program; `units` for loops with units on them. */
  readonly app: string;
  readonly addresses: readonly string[];
  readonly units: readonly string[];
  readonly loops: readonly LoopView[];
  readonly openConnections: number;
  readonly requestsPerSecond: number | undefined;
  /** Connections that were answered by 503 since the start. */
  readonly turnedAway: number;
  /** Processes that ended, or lost a loop, without having been asked to, or did not start. */
  readonly lostProcesses: number;
}

export interface LoopView {
  readonly process: number;
  readonly loop: number;
  readonly pid: number | undefined;
  readonly state: string;
  readonly utilization: number;
  readonly lagMs: number;
  /** For so long it has given no sign of life. */
  readonly blockedMs: number;
  readonly openConnections: number;
  readonly requestsInFlight: number;
  readonly requestsPerSecond: number | undefined;
  readonly rssBytes: number;
  /** How the process before ended. */
  readonly lastExit: string | undefined;
}

export interface BusView {
  readonly pid: number;
  readonly thread: number;
  readonly id: number;
  readonly sentPerSecond: number | undefined;
  readonly receivedPerSecond: number | undefined;
  /** Since the start. */
  readonly undelivered: number;
  readonly dropped: number;
}
