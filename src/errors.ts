// Every error that manycore throws: one class, one table of codes. A code is API: callers and tests
// compare `code`, never the class or the text, because codes cross threads and processes unchanged.
// `docs/errors.md` explains each to its reader; `test/errors.test.ts` holds table and page together.

/** Every code, with the fact that it states. Codes are named part first, then fact. */
export const errorCodes = {
  // internal, options
  OPTION_INVALID: 'an option or argument has the wrong type or is out of range',
  ABORTED: 'the signal was aborted before the work ended',
  INTERNAL_STATE: 'a part took a step that its state does not allow: a bug of manycore',
  // native
  NATIVE_MISSING: 'the native binary is missing or does not load on this platform',
  NATIVE_REFUSED: 'the kernel refused a request of the native core',
  // other processes
  PROCESS_OTHER_PID_NAMESPACE:
    'the process is in another PID namespace and cannot be read from this one',
  PROCESS_GONE: 'no process has this number',
  PROCESS_NOT_NODE: 'the process is not a Node program',
  PROCESS_REFUSED: 'this user may not read the process',
  THREADPOOL_UNREADABLE: 'the thread pool of the process cannot be read',
  // channels
  CHANNEL_CLOSED: 'the channel was closed, by this side or by the peer',
  CHANNEL_FRAME_CORRUPT: 'the received bytes are not a frame of this version',
  CHANNEL_UNAVAILABLE: 'the requested channel does not work here',
  SEGMENT_CORRUPT: 'a number in shared memory is out of range: another program wrote there',
  SEGMENT_VERSION: 'the segment was made by another version of manycore',
  SHARED_MEMORY_FULL: 'shared memory has no room for a block of this size',
  // context
  TRANSFER_UNSUPPORTED: 'a captured value, argument or result cannot travel to another process',
  TRANSFER_UNREADABLE: 'a value that the function captured cannot be read here',
  TRANSFER_SHARED_VARIABLE: 'two functions share a variable that one of them changes',
  TRANSFER_VERSION_DIFFERS: 'a module that the function imports has another version in the worker',
  TRANSFER_IMPORT_FAILED: 'a module that the function imports cannot be imported in the worker',
  TRANSFER_CORRUPT: 'the bytes of a value are damaged',
  // workers
  WORKER_EXITED: 'the worker ended while it ran the task',
  WORKER_START_FAILED: 'a worker could not be started',
  WORKER_PROTOCOL: 'a worker sent an unknown message',
  // partitions
  PARTITION_CODE: 'a worker in a partition sent what is no data',
  PARTITION_UNAVAILABLE: 'a partition cannot be made here as it was asked for',
  // pool
  POOL_QUEUE_FULL: 'the queue is full',
  POOL_BUSY: 'no worker is idle, and the call must not wait',
  POOL_CLOSED: 'the pool is closed',
  TASK_TIMED_OUT: 'the task exceeded its time limit',
  TASK_WAITED_TOO_LONG: 'the task exceeded its time limit in the queue, and has not run',
  TASK_NOT_FUNCTION: 'the task is not a function',
  // parallel maps
  MAP_ITEM_FAILED: 'the mapper threw a non-Error value, for an item that the message names',
  // serving
  SERVE_CLOSED: 'the server is closed',
  SERVE_CONTROL_FAILED: 'a running server does not answer, or refused the request',
  SERVE_FAILED: 'processes of the server ended too often in a row',
  SERVE_START_FAILED: 'a process of the server could not be started, or does not listen',
  SERVE_UPGRADE_FAILED: 'the successor of a server does not serve; the old one goes on',
  // event bus
  BUS_CLOSED: 'the bus is closed, or the unit has ended',
  BUS_CODEC_FAILED: 'the codec of a message body is missing, or threw',
  BUS_CONSUMER_LOST: 'the loop of a consumer ended before it answered',
  BUS_FAILED: 'the consumer answered the request with a failure',
  BUS_FULL: 'the queue of the consumer is full',
  BUS_HANDLER_ERROR: 'the consumer of a request threw',
  BUS_INTERCEPTED: 'an interceptor stopped the request',
  BUS_NO_HANDLERS: 'the address of the request has no consumer',
  BUS_NO_METHOD: 'the service has no method of this name',
  BUS_REPLIED: 'the message was answered before',
  BUS_TIMEOUT: 'a request was not answered in time',
  BUS_TOO_LARGE: 'the message exceeds the size limit of the NATS server',
  // clusters
  CLUSTER_CLIENT_MISSING: 'the client of NATS, which a cluster needs, is not installed',
  CLUSTER_CLOSED: 'the connection to the cluster is closed',
  CLUSTER_WORKER_LOST: 'the machine of a worker in the cluster, or the network to it, is gone',
  CLUSTER_NOT_DURABLE:
    'durable tasks and shared data need JetStream, which no NATS server offers here',
  CLUSTER_NO_WORKER: 'the tasks of a pool on a cluster wait: no node has a worker for it',
  CLUSTER_REFUSED: 'a NATS server, or another node of the cluster, has refused this one',
  CLUSTER_UNREACHABLE: 'no NATS server answers',
  CLUSTER_UNSIGNED: 'functions and classes travel in a cluster only with a secret',
  // shared data
  SHARED_DATA_TIMED_OUT: 'a call on shared data, or the wait for a lock, took too long',
  SHARED_DATA_TOO_LARGE: 'a value, key or name of shared data exceeds its limit',
  SHARED_LOCK_LOST: 'the lease of a lock could not be renewed in time, or was taken',
  // transactional memory
  STM_ASYNC: 'the function of a transaction returned a promise',
  STM_CROWDED: 'too many threads take part in the transactional memory',
  STM_GONE: 'the variable was freed',
  STM_OTHER_MEMORY: 'the variable belongs to another memory than that of this program',
  STM_OUTSIDE: 'the call needs a transaction around it',
  STM_SIDE_EFFECT: 'the call has effects outside, and was made in a transaction',
  STM_STUCK: 'a thread that is stopped in the middle of a commit holds the others up',
  STM_TIMED_OUT: 'no variable changed in time',
  STM_TOO_LARGE: 'the transaction reads or writes too many variables',
  STM_VALUE: 'a variable cannot hold this value',
  STM_VALUE_TOO_LARGE: 'the value is larger than 64 KiB',
  STM_WOULD_BLOCK: 'the transaction would have to wait for a change',
  // units
  LOOPS_CLOSED: 'the loops are closed',
  UNIT_FAILED: 'instances of a unit were given up after too many restarts',
  UNIT_INVALID: 'not a deployable unit, or one that cannot be loaded',
  UNIT_MOVE_FAILED:
    'an instance of a unit could not move to another loop, and goes on where it was',
  UNIT_REDEPLOY_FAILED: 'a unit could not be redeployed, and its instances go on as they were',
  UNIT_START_FAILED: 'an instance of a unit could not start: its deployment was undone',
  UNIT_STOP_FAILED: 'an instance of a unit failed to stop, and is gone all the same',
  UNIT_UNDEPLOYED: 'the deployment has ended',
  UNIT_VERSION_CHANGED: 'the code of a unit was edited after its deployment',
  // observing
  DASHBOARD_START_FAILED: 'the dashboard cannot listen at its address',
  METRICS_LISTEN_FAILED: 'the metrics cannot be served at this address',
  METRIC_NAME_TAKEN: 'the registry has a metric of this name already',
  OBSERVE_PROGRAM_NOT_FOUND: 'no program of this user that uses manycore has this process number',
  PROFILE_FAILED: 'a thread or a worker could not be profiled',
  OPENTELEMETRY_MISSING:
    'the package @opentelemetry/api, which instrument() needs, is not installed',
  RUNTIME_FOLDER_REFUSED: 'the private folder in which programs are found cannot be used',
  TOP_NO_TERMINAL: 'the full-screen view needs a terminal',
  // tracing
  TRACE_COMMAND_FAILED: 'the command to trace cannot be started',
  TRACE_UNAVAILABLE: 'the requested way of tracing does not work here',
  TRACE_WRITE_FAILED: 'a file of the trace cannot be written',
  // tuning
  TUNE_LOAD_FAILED: 'the load failed, ended early, or reported no measurement',
  TUNE_NOT_READY: 'the program to tune does not answer in time at its address',
  TUNE_PORT_TAKEN: 'the port of the program to tune is in use',
  TUNE_PROGRAM_FAILED: 'the program to tune ended while it was measured',
  TUNE_WRITE_FAILED: 'the report or the configuration of tune cannot be written',
  // command line
  CLI_FILE_NOT_FOUND: 'the program to run, or the folder to serve, is not there',
  CLI_OUTPUT_FAILED: 'the output of the command cannot be written',
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** @internal */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(errorCodes, value);
}

/** Names by which programs recognise errors, as those of `AbortSignal` and `AbortSignal.timeout`. */
const namesOfKind: Partial<Record<ErrorCode, string>> = {
  ABORTED: 'AbortError',
  TASK_TIMED_OUT: 'TimeoutError',
  TASK_WAITED_TOO_LONG: 'TimeoutError',
  BUS_TIMEOUT: 'TimeoutError',
  SHARED_DATA_TIMED_OUT: 'TimeoutError',
  STM_TIMED_OUT: 'TimeoutError',
};

/** An error with a stable `code`; `message` says what happened, with the value, and the way out. */
export class CodedError extends Error {
  static {
    // Not that of `Error`, which a program may have replaced.
    const value = Function.prototype[Symbol.hasInstance];
    const descriptor: object = { __proto__: null, value };
    // biome-ignore lint/complexity/noThisInStatic: esbuild renames a class whose body names it
    Object.defineProperty(this, Symbol.hasInstance, descriptor);
  }

  readonly code: ErrorCode;
  /** Defined as a field: an assignment fails where a program has frozen `Error.prototype`. */
  override name = 'CodedError';

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    const name = Object.hasOwn(namesOfKind, code) ? namesOfKind[code] : undefined;
    if (name !== undefined) this.name = name;
    this.code = code;
  }
}

/** An error of ours with this code, and what it may have beside it. */
export type CodedErrorOf<Code extends ErrorCode> = CodedError & {
  readonly code: Code;
} & (Code extends 'WORKER_EXITED'
    ? {
        /** The end of the worker; both are left out when it was not observed. */
        readonly exitCode?: number | null;
        readonly signal?: string | null;
      }
    : unknown);

/** True: `value` is an error of ours with this code, made in this process or in another. */
export function hasCode<Code extends ErrorCode>(
  value: unknown,
  code: Code,
): value is CodedErrorOf<Code> {
  return typeof value === 'object' && value !== null && 'code' in value && value.code === code;
}
