// Views of running programs: plain data, the same for the terminal and the page. A value is `undefined` when
// it is not available yet (a rate needs two polls) or at all (CPU of a worker thread).

export interface ProgramView {
  readonly pid: number;
  readonly title: string;
  readonly summary: SummaryView;
  readonly threads: readonly ThreadView[];
  readonly pools: readonly PoolView[];
  readonly servers: readonly ServerView[];
  readonly buses: readonly BusView[];
  readonly memories: readonly MemoryView[];
}

/**
 * Summary of a program: sums, and the worst of its loops. Loops of workers are left out: they may be busy.
 */
export interface SummaryView {
  readonly loops: number;
  /** Utilization of the busiest loop, 0 to 1. */
  readonly utilization: number | undefined;
  readonly lagP99Ms: number | undefined;
  /** Without threads that may block. */
  readonly silentThreads: number;
  readonly workers: number;
  readonly busyWorkers: number;
  readonly waitingTasks: number;
  readonly tasksPerSecond: number | undefined;
  readonly requestsPerSecond: number | undefined;
  /** Workers and server processes that ended unexpectedly, since the start. */
  readonly lost: number;
  /** Sum over all its processes: 1 is one core. */
  readonly cpuShare: number | undefined;
  readonly rssBytes: number | undefined;
}

export interface ThreadView {
  readonly pid: number;
  readonly thread: number;
  /**
   * `main`, `thread 2`, `loop 0.1` in a server (process and number within it), or `worker 3` for a worker
   * that has pools of its own.
   */
  readonly role: string;
  /** True: no answer in time, blocked or stopped. Values of its loop are `undefined` then. */
  readonly isSilent: boolean;
  readonly utilization: number | undefined;
  readonly lagP50Ms: number | undefined;
  readonly lagP99Ms: number | undefined;
  readonly lagMaxMs: number | undefined;
  readonly heapUsedBytes: number | undefined;
  readonly heapLimitBytes: number | undefined;
  /** Share of time in garbage collection, 0 to 1. */
  readonly gcShare: number | undefined;
  /** The longest pause since sampling started. */
  readonly gcMaxMs: number | undefined;
  /** Memory of its process; only in the row of the first thread of the process. */
  readonly rssBytes: number | undefined;
  readonly cpuShare: number | undefined;
}

export interface PoolView {
  readonly pid: number;
  readonly thread: number;
  readonly id: number;
  /** True: its thread does not answer. All values are old, and there are no rates. */
  readonly isSilent: boolean;
  readonly channel: string;
  readonly workers: readonly WorkerView[];
  readonly busyWorkers: number;
  readonly waitingTasks: number;
  readonly runningTasks: number;
  readonly tasksPerSecond: number | undefined;
  readonly failedPerSecond: number | undefined;
  /** Durations since the pool was opened. */
  readonly waitP50Ms: number;
  readonly waitP99Ms: number;
  readonly runP50Ms: number;
  readonly runP99Ms: number;
  readonly failedTasks: number;
  readonly startedWorkers: number;
  /** Ended workers, for any reason. */
  readonly endedWorkers: number;
  /** Ended workers that the pool had not closed. */
  readonly lostWorkers: number;
  /** Limits of each worker; `undefined`: they are in no partitions. */
  readonly partition: PartitionView | undefined;
}

/** Limits of a partition. */
export interface PartitionView {
  readonly memoryBytes: number;
  /** 1 is one core. */
  readonly cpuShare: number;
  /** Processes that its code may start. */
  readonly maxProcesses: number;
}

export interface WorkerView {
  readonly id: number;
  readonly kind: string;
  /**
   * `undefined` for a thread, and for a worker on another machine. In a partition the process outside: CPU and memory
   * are sums over all its processes.
   */
  readonly pid: number | undefined;
  /** Processes inside of a partition, parents before their children; `undefined` for other workers. */
  readonly inside: readonly InsideView[] | undefined;
  readonly state: string;
  readonly tasksInFlight: number;
  readonly tasksDone: number;
  readonly tasksPerSecond: number | undefined;
  /** CPU of its process. */
  readonly cpuShare: number | undefined;
  readonly rssBytes: number | undefined;
  /** As last reported: a busy worker reports when its loop gets to it. */
  readonly heapUsedBytes: number | undefined;
  readonly heapLimitBytes: number | undefined;
  /** Share of time in garbage collection, 0 to 1, between its last two reports. */
  readonly gcShare: number | undefined;
}

/** A process inside of a partition, as seen from outside. */
export interface InsideView {
  readonly pid: number;
  readonly name: string;
  /** 0: the worker itself, or one whose parent has ended. */
  readonly depth: number;
  readonly cpuShare: number | undefined;
  readonly rssBytes: number | undefined;
}

export interface ServerView {
  /** Unique, and the same at each poll. */
  readonly key: string;
  /** Path of its program; `units` for loops with units. */
  readonly app: string;
  readonly addresses: readonly string[];
  readonly units: readonly string[];
  readonly loops: readonly LoopView[];
  readonly openConnections: number;
  readonly requestsPerSecond: number | undefined;
  /** Connections answered with 503 since the start. */
  readonly turnedAway: number;
  /** Processes that ended unexpectedly, lost a loop, or failed to start. */
  readonly lostProcesses: number;
}

export interface LoopView {
  readonly process: number;
  readonly loop: number;
  readonly pid: number | undefined;
  readonly state: string;
  readonly utilization: number;
  readonly lagMs: number;
  /** Time since its last heartbeat. */
  readonly blockedMs: number;
  readonly openConnections: number;
  readonly requestsInFlight: number;
  readonly requestsPerSecond: number | undefined;
  readonly rssBytes: number;
  /** Exit of the previous process in this place. */
  readonly lastExit: string | undefined;
}

export interface BusView {
  readonly pid: number;
  readonly thread: number;
  readonly id: number;
  readonly sentPerSecond: number | undefined;
  readonly receivedPerSecond: number | undefined;
  /** Counts since the start. */
  readonly undelivered: number;
  readonly dropped: number;
  /** Errors of handlers that no requester got. */
  readonly failed: number;
}

/** The transactional memory of the program, as one of its threads reports it. */
export interface MemoryView {
  readonly pid: number;
  readonly thread: number;
  readonly id: number;
  /** Identifies the memory. */
  readonly space: number;
  readonly threads: number;
  readonly memoryBytes: number;
  readonly commitsPerSecond: number | undefined;
  readonly conflictsPerSecond: number | undefined;
  readonly sleepsPerSecond: number | undefined;
  /** Counts since the first variable. */
  readonly thefts: number;
  readonly recoveries: number;
}
