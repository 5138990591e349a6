import { Duplex } from "node:stream";
import { EventEmitter } from "node:events";
import { AsyncLocalStorage } from "node:async_hooks";
import { Transferable } from "node:worker_threads";
declare const errorCodes: {
    readonly OPTION_INVALID: "an option or argument has the wrong type or is out of range";
    readonly ABORTED: "the signal was aborted before the work ended";
    readonly INTERNAL_STATE: "a part took a step that its state does not allow: a bug of manycore";
    readonly NATIVE_MISSING: "the native binary is missing or does not load on this platform";
    readonly NATIVE_REFUSED: "the kernel refused a request of the native core";
    readonly PROCESS_OTHER_PID_NAMESPACE: "the process is in another PID namespace and cannot be read from this one";
    readonly PROCESS_GONE: "no process has this number";
    readonly PROCESS_NOT_NODE: "the process is not a Node program";
    readonly PROCESS_REFUSED: "this user may not read the process";
    readonly THREADPOOL_UNREADABLE: "the thread pool of the process cannot be read";
    readonly CHANNEL_CLOSED: "the channel was closed, by this side or by the peer";
    readonly CHANNEL_FRAME_CORRUPT: "the received bytes are not a frame of this version";
    readonly CHANNEL_UNAVAILABLE: "the requested channel does not work here";
    readonly SEGMENT_CORRUPT: "a number in shared memory is out of range: another program wrote there";
    readonly SEGMENT_VERSION: "the segment was made by another version of manycore";
    readonly SHARED_MEMORY_FULL: "shared memory has no room for a block of this size";
    readonly TRANSFER_UNSUPPORTED: "a captured value, argument or result cannot travel to another process";
    readonly TRANSFER_UNREADABLE: "a value that the function captured cannot be read here";
    readonly TRANSFER_SHARED_VARIABLE: "two functions share a variable that one of them changes";
    readonly TRANSFER_VERSION_DIFFERS: "a module that the function imports has another version in the worker";
    readonly TRANSFER_IMPORT_FAILED: "a module that the function imports cannot be imported in the worker";
    readonly TRANSFER_CORRUPT: "the bytes of a value are damaged";
    readonly WORKER_EXITED: "the worker ended while it ran the task";
    readonly WORKER_START_FAILED: "a worker could not be started";
    readonly WORKER_PROTOCOL: "a worker sent an unknown message";
    readonly PARTITION_CODE: "a worker in a partition sent what is no data";
    readonly PARTITION_UNAVAILABLE: "a partition cannot be made here as it was asked for";
    readonly POOL_QUEUE_FULL: "the queue is full";
    readonly POOL_BUSY: "no worker is idle, and the call must not wait";
    readonly POOL_CLOSED: "the pool is closed";
    readonly TASK_TIMED_OUT: "the task exceeded its time limit";
    readonly TASK_WAITED_TOO_LONG: "the task exceeded its time limit in the queue, and has not run";
    readonly TASK_NOT_FUNCTION: "the task is not a function";
    readonly MAP_ITEM_FAILED: "the mapper threw a non-Error value, for an item that the message names";
    readonly SERVE_CLOSED: "the server is closed";
    readonly SERVE_CONTROL_FAILED: "a running server does not answer, or refused the request";
    readonly SERVE_FAILED: "processes of the server ended too often in a row";
    readonly SERVE_START_FAILED: "a process of the server could not be started, or does not listen";
    readonly SERVE_UPGRADE_FAILED: "the successor of a server does not serve; the old one goes on";
    readonly BUS_CLOSED: "the bus is closed, or the unit has ended";
    readonly BUS_CODEC_FAILED: "the codec of a message body is missing, or threw";
    readonly BUS_CONSUMER_LOST: "the loop of a consumer ended before it answered";
    readonly BUS_FAILED: "the consumer answered the request with a failure";
    readonly BUS_FULL: "the queue of the consumer is full";
    readonly BUS_HANDLER_ERROR: "the consumer of a request threw";
    readonly BUS_INTERCEPTED: "an interceptor stopped the request";
    readonly BUS_NO_HANDLERS: "the address of the request has no consumer";
    readonly BUS_NO_METHOD: "the service has no method of this name";
    readonly BUS_REPLIED: "the message was answered before";
    readonly BUS_TIMEOUT: "a request was not answered in time";
    readonly BUS_TOO_LARGE: "the message exceeds the size limit of the NATS server";
    readonly CLUSTER_CLIENT_MISSING: "the client of NATS, which a cluster needs, is not installed";
    readonly CLUSTER_CLOSED: "the connection to the cluster is closed";
    readonly CLUSTER_WORKER_LOST: "the machine of a worker in the cluster, or the network to it, is gone";
    readonly CLUSTER_NOT_DURABLE: "durable tasks and shared data need JetStream, which no NATS server offers here";
    readonly CLUSTER_NO_WORKER: "the tasks of a pool on a cluster wait: no node has a worker for it";
    readonly CLUSTER_REFUSED: "a NATS server, or another node of the cluster, has refused this one";
    readonly CLUSTER_UNREACHABLE: "no NATS server answers";
    readonly CLUSTER_UNSIGNED: "functions and classes travel in a cluster only with a secret";
    readonly SHARED_DATA_TIMED_OUT: "a call on shared data, or the wait for a lock, took too long";
    readonly SHARED_DATA_TOO_LARGE: "a value, key or name of shared data exceeds its limit";
    readonly SHARED_LOCK_LOST: "the lease of a lock could not be renewed in time, or was taken";
    readonly STM_ASYNC: "the function of a transaction returned a promise";
    readonly STM_CROWDED: "too many threads take part in the transactional memory";
    readonly STM_GONE: "the variable was freed";
    readonly STM_OTHER_MEMORY: "the variable belongs to another memory than that of this program";
    readonly STM_OUTSIDE: "the call needs a transaction around it";
    readonly STM_SIDE_EFFECT: "the call has effects outside, and was made in a transaction";
    readonly STM_STUCK: "a thread that is stopped in the middle of a commit holds the others up";
    readonly STM_TIMED_OUT: "no variable changed in time";
    readonly STM_TOO_LARGE: "the transaction reads or writes too many variables";
    readonly STM_VALUE: "a variable cannot hold this value";
    readonly STM_VALUE_TOO_LARGE: "the value is larger than 64 KiB";
    readonly STM_WOULD_BLOCK: "the transaction would have to wait for a change";
    readonly LOOPS_CLOSED: "the loops are closed";
    readonly UNIT_FAILED: "instances of a unit were given up after too many restarts";
    readonly UNIT_INVALID: "not a deployable unit, or one that cannot be loaded";
    readonly UNIT_MOVE_FAILED: "an instance of a unit could not move to another loop, and goes on where it was";
    readonly UNIT_REDEPLOY_FAILED: "a unit could not be redeployed, and its instances go on as they were";
    readonly UNIT_START_FAILED: "an instance of a unit could not start: its deployment was undone";
    readonly UNIT_STOP_FAILED: "an instance of a unit failed to stop, and is gone all the same";
    readonly UNIT_UNDEPLOYED: "the deployment has ended";
    readonly UNIT_VERSION_CHANGED: "the code of a unit was edited after its deployment";
    readonly DASHBOARD_START_FAILED: "the dashboard cannot listen at its address";
    readonly METRICS_LISTEN_FAILED: "the metrics cannot be served at this address";
    readonly METRIC_NAME_TAKEN: "the registry has a metric of this name already";
    readonly OBSERVE_PROGRAM_NOT_FOUND: "no program of this user that uses manycore has this process number";
    readonly PROFILE_FAILED: "a thread or a worker could not be profiled";
    readonly OPENTELEMETRY_MISSING: "the package @opentelemetry/api, which instrument() needs, is not installed";
    readonly RUNTIME_FOLDER_REFUSED: "the private folder in which programs are found cannot be used";
    readonly TOP_NO_TERMINAL: "the full-screen view needs a terminal";
    readonly TRACE_COMMAND_FAILED: "the command to trace cannot be started";
    readonly TRACE_UNAVAILABLE: "the requested way of tracing does not work here";
    readonly TRACE_WRITE_FAILED: "a file of the trace cannot be written";
    readonly TUNE_LOAD_FAILED: "the load failed, ended early, or reported no measurement";
    readonly TUNE_NOT_READY: "the program to tune does not answer in time at its address";
    readonly TUNE_PORT_TAKEN: "the port of the program to tune is in use";
    readonly TUNE_PROGRAM_FAILED: "the program to tune ended while it was measured";
    readonly TUNE_WRITE_FAILED: "the report or the configuration of tune cannot be written";
    readonly CLI_FILE_NOT_FOUND: "the program to run, or the folder to serve, is not there";
    readonly CLI_OUTPUT_FAILED: "the output of the command cannot be written";
};
type ErrorCode = keyof typeof errorCodes;
declare class CodedError extends Error {
    readonly code: ErrorCode;
    name: string;
    constructor(code: ErrorCode, message: string, options?: ErrorOptions);
}
type CodedErrorOf<Code extends ErrorCode> = CodedError & {
    readonly code: Code;
} & (Code extends "WORKER_EXITED" ? {
    readonly exitCode?: number | null;
    readonly signal?: string | null;
} : unknown);
declare function hasCode<Code extends ErrorCode>(value: unknown, code: Code): value is CodedErrorOf<Code>;
type BusHeaders = Readonly<Record<string, string>>;
type OutgoingBusHeaders = Readonly<Record<string, string | readonly string[]>>;
type DistinctBusHeaders = Readonly<Record<string, readonly string[]>>;
interface ReplyOptions {
    readonly headers?: OutgoingBusHeaders | undefined;
    readonly codec?: string | undefined;
}
interface ReplyRequestOptions extends ReplyOptions {
    readonly timeoutMs?: number | undefined;
    readonly signal?: AbortSignal | undefined;
}
declare class BusMessage<Body = unknown> {
    #private;
    readonly address: string;
    readonly body: Body;
    readonly headers: BusHeaders;
    get headersDistinct(): DistinctBusHeaders;
    get isAwaited(): boolean;
    reply(body: unknown, options?: ReplyOptions): void;
    replyAndRequest(body: unknown, options?: ReplyRequestOptions): Promise<BusMessage>;
    fail(failureCode: number, message: string): void;
}
declare class Consumer<Body = unknown> {
    #private;
    readonly address: string;
    readonly closed: Promise<void>;
    get buffered(): number;
    get dropped(): number;
    get isClosed(): boolean;
    [Symbol.asyncIterator](): AsyncIterableIterator<BusMessage<Body>>;
    pause(): this;
    resume(): this;
    fetch(count: number): this;
    close(): void;
    [Symbol.dispose](): void;
}
interface TaskMessage {
    readonly pool: number;
    readonly task: number;
    readonly name: string;
}
interface TaskQueuedMessage extends TaskMessage {
    readonly waitingTasks: number;
}
interface TaskStartMessage extends TaskMessage {
    readonly worker: number;
    readonly waitedMs: number;
}
interface TaskEndMessage extends TaskMessage {
    readonly worker: number;
    readonly ranMs: number;
}
interface TaskErrorMessage extends TaskEndMessage {
    readonly error: unknown;
}
interface WorkerMessage {
    readonly worker: number;
    readonly kind: "process" | "thread" | "sandbox" | "vm";
    readonly pid: number | undefined;
}
interface WorkerReadyMessage extends WorkerMessage {
    readonly startedInMs: number;
}
interface WorkerExitMessage extends WorkerMessage {
    readonly exitCode: number | null;
    readonly signal: string | null;
    readonly isExpected: boolean;
    readonly error: Error | undefined;
}
type WorkerLimit = "memory" | "tasks" | "output" | "result" | "data" | "protocol";
interface WorkerLimitMessage extends WorkerMessage {
    readonly limit: WorkerLimit;
    readonly reason: string;
}
interface WorkerRestartMessage extends WorkerMessage {
    readonly attempt: number;
    readonly delayMs: number;
}
interface PoolMessage {
    readonly pool: number;
}
interface PoolResizeMessage extends PoolMessage {
    readonly workersBefore: number;
    readonly workersWanted: number;
}
interface PoolDegradedMessage extends PoolMessage {
    readonly failedStarts: number;
    readonly degradedMs: number;
    readonly reason: string;
    readonly delayMs: number;
    readonly waitingTasks: number;
}
interface PoolRecoveredMessage extends PoolMessage {
    readonly degradedMs: number;
}
interface MicroOptions {
    readonly name: string;
    readonly version: string;
    readonly description?: string | undefined;
    readonly metadata?: Readonly<Record<string, string>> | undefined;
}
type Locality = "only" | "prefer" | undefined;
interface BusCodec<Value = unknown, Encoded = unknown> {
    readonly name: string;
    readonly type?: (new (...args: never[]) => Value) | undefined;
    encode(body: Value): Encoded;
    decode(encoded: Encoded): Value;
}
interface Registration extends Disposable {
    close(): void;
}
interface InterceptedMessage {
    readonly address: string;
    readonly body: unknown;
    readonly headers: BusHeaders;
    readonly headersDistinct: DistinctBusHeaders;
    readonly isAwaited: boolean;
    readonly isPublished: boolean;
}
interface InterceptedChange {
    readonly body?: unknown;
    readonly headers?: OutgoingBusHeaders | undefined;
}
type Interceptor = (message: InterceptedMessage) => InterceptedChange | false | void;
interface Interceptors {
    readonly outbound?: Interceptor | undefined;
    readonly inbound?: Interceptor | undefined;
    readonly outboundReply?: Interceptor | undefined;
    readonly inboundReply?: Interceptor | undefined;
}
interface ConsumerEnd {
    readonly address: string;
    readonly reason: "closed" | "lost" | "none";
}
interface InstanceEnd {
    readonly deployment: number;
    readonly name: string;
    readonly instance: number | undefined;
    readonly reason: "undeployed" | "lost" | "failed" | "restarted" | "none";
    readonly why: string;
}
interface MonitoredDeployment {
    readonly id: number;
    readonly name: string;
    readonly ended: Promise<void>;
}
type ServiceProxy<T> = {
    readonly [Name in keyof T as Name extends "constructor" | "hasOwnProperty" | "isPrototypeOf" | "propertyIsEnumerable" | "then" | "toJSON" | "toLocaleString" | "toString" | "valueOf" | `_${string}` | `#${string}` ? never : NonNullable<T[Name]> extends (...args: never[]) => unknown ? Name & string : never]-?: NonNullable<T[Name]> extends (...args: infer Args) => infer Result ? (...args: Args) => Promise<Awaited<Result>> : never;
};
interface ProxyOptions extends Omit<SendOptions, "codec">, Omit<ReplyRequestOptions, "codec"> {
}
interface ServiceOptions extends ConsumerOptions {
    readonly micro?: MicroOptions | undefined;
}
interface StreamOptions extends ReplyRequestOptions, SendOptions {
    readonly signal?: AbortSignal | undefined;
}
type StreamHandler = (stream: Duplex, headers: BusHeaders) => unknown;
interface SendOptions {
    readonly headers?: OutgoingBusHeaders | undefined;
    readonly local?: Locality;
    readonly codec?: string | undefined;
}
interface ConsumerOptions {
    readonly maxBuffered?: number | undefined;
    readonly isLocal?: boolean | undefined;
}
type Handler<Body = unknown> = (message: BusMessage<Body>) => unknown;
interface BusStats {
    readonly sent: number;
    readonly received: number;
    readonly undelivered: number;
    readonly dropped: number;
    readonly failed: number;
}
interface Bus {
    readonly stats: BusStats;
    consumer<Body = unknown>(address: string, handler: Handler<Body>, options?: ConsumerOptions): Consumer<Body>;
    consumer<Body = unknown>(address: string, options?: ConsumerOptions): Consumer<Body>;
    publish(address: string, body: unknown, options?: SendOptions): boolean;
    send(address: string, body: unknown, options?: SendOptions): boolean;
    request<Body = unknown>(address: string, body: unknown, options?: SendOptions & ReplyRequestOptions): Promise<BusMessage<Body>>;
    address<Request = unknown, Reply = unknown>(name: string): BusAddress<Request, Reply>;
    service(address: string, service: object, options?: ServiceOptions): Consumer;
    proxy<T>(address: string, options?: ProxyOptions): ServiceProxy<T>;
    openStream(address: string, options?: StreamOptions): Promise<Duplex>;
    acceptStreams(address: string, handler: StreamHandler, options?: ConsumerOptions): Consumer;
    monitor(target: string, listener: (end: ConsumerEnd) => unknown): Registration;
    monitor(target: MonitoredDeployment, listener: (end: InstanceEnd) => unknown): Registration;
    intercept(interceptors: Interceptors): Registration;
    addCodec<Value, Encoded>(codec: BusCodec<Value, Encoded>): Registration;
    drained(): Promise<void>;
}
declare class BusAddress<Request, Reply> {
    #private;
    readonly name: string;
    consumer(handler: Handler<Request>, options?: ConsumerOptions): Consumer<Request>;
    consumer(options?: ConsumerOptions): Consumer<Request>;
    answer(handler: (body: Request, message: BusMessage<Request>) => Reply | Promise<Reply>, options?: ConsumerOptions): Consumer;
    publish(body: Request, options?: SendOptions): boolean;
    send(body: Request, options?: SendOptions): boolean;
    request(body: Request, options?: SendOptions & ReplyRequestOptions): Promise<BusMessage<Reply>>;
}
type ChannelKind = "shm" | "socket" | "memory";
interface NatsOptions {
    readonly servers: string | readonly string[];
    readonly user?: string | undefined;
    readonly pass?: string | undefined;
    readonly token?: string | undefined;
    readonly credsFile?: string | undefined;
    readonly nkeyFile?: string | undefined;
    readonly tls?: {
        readonly caFile?: string | undefined;
        readonly ca?: string | undefined;
        readonly certFile?: string | undefined;
        readonly cert?: string | undefined;
        readonly keyFile?: string | undefined;
        readonly key?: string | undefined;
        readonly passphrase?: string | undefined;
        readonly servername?: string | undefined;
        readonly handshakeFirst?: boolean | undefined;
        readonly rejectUnauthorized?: boolean | undefined;
    } | undefined;
    readonly inboxPrefix?: string | undefined;
    readonly pingInterval?: number | undefined;
}
interface ClusterOptions {
    readonly nats?: string | readonly string[] | NatsOptions | undefined;
    readonly transport?: "local" | undefined;
    readonly name?: string | undefined;
    readonly secret?: string | undefined;
    readonly local?: "prefer" | undefined;
    readonly timeoutMs?: number | undefined;
}
interface LendOptions {
    readonly durable?: boolean | undefined;
    readonly modules?: readonly (string | URL)[] | undefined;
    readonly drainTimeoutMs?: number | undefined;
}
interface SharedCounter {
    readonly name: string;
    get(): Promise<number>;
    add(change?: number): Promise<number>;
    compareAndSet(expected: number, value: number): Promise<boolean>;
}
interface Lease extends AsyncDisposable {
    readonly token: number;
    readonly signal: AbortSignal;
    release(): Promise<void>;
}
interface SharedDataOptions {
    readonly timeoutMs?: number | undefined;
}
interface AcquireOptions {
    readonly leaseMs?: number | undefined;
    readonly timeoutMs?: number | undefined;
    readonly signal?: AbortSignal | undefined;
}
interface SharedMapWatchOptions {
    readonly key?: string | undefined;
    readonly signal?: AbortSignal | undefined;
}
interface SharedLock {
    readonly name: string;
    acquire(options?: AcquireOptions): Promise<Lease>;
}
interface SharedMapEntry<Value> {
    readonly key: string;
    readonly value: Value;
    readonly revision: number;
}
type SharedMapChange<Value> = (SharedMapEntry<Value> & {
    readonly type: "set";
    readonly isInitial: boolean;
}) | {
    readonly type: "delete";
    readonly key: string;
    readonly revision: number;
    readonly isInitial: false;
};
interface SharedMap<Value = unknown> {
    readonly name: string;
    get(key: string): Promise<Value | undefined>;
    getEntry(key: string): Promise<SharedMapEntry<Value> | undefined>;
    has(key: string): Promise<boolean>;
    set(key: string, value: Value): Promise<number>;
    setIfAbsent(key: string, value: Value): Promise<number | undefined>;
    compareAndSet(key: string, revision: number, value: Value): Promise<number | undefined>;
    delete(key: string): Promise<boolean>;
    clear(): Promise<void>;
    size(): Promise<number>;
    keys(): AsyncIterable<string>;
    entries(): AsyncIterable<[
        key: string,
        value: Value
    ]>;
    watch(options?: SharedMapWatchOptions): AsyncIterable<SharedMapChange<Value>>;
}
declare class WorkerProvider implements AsyncDisposable {
    #private;
    get lentWorkers(): number;
    get runningTasks(): number;
    get workers(): number;
    close(): Promise<void>;
    destroy(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
interface ClusterEvents {
    join: [
        ClusterNode
    ];
    leave: [
        ClusterNode
    ];
}
declare class Cluster extends EventEmitter<ClusterEvents> implements AsyncDisposable {
    #private;
    readonly closed: Promise<void>;
    get node(): ClusterNode;
    get nodes(): readonly ClusterNode[];
    get workers(): unknown;
    map<Value = unknown>(name: string, options?: SharedDataOptions): SharedMap<Value>;
    lock(name: string, options?: SharedDataOptions): SharedLock;
    counter(name: string, options?: SharedDataOptions): SharedCounter;
    lendWorkers(count?: number, options?: LendOptions): Promise<WorkerProvider>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
interface ClusterNode {
    readonly id: string;
    readonly host: string;
    readonly pid: number;
    readonly version: string;
}
type AnyFunction = Function;
declare const send: unique symbol;
declare function perWorker<T>(factory: () => T): () => T;
declare function propagate<T>(storage: AsyncLocalStorage<T>, key?: string): AsyncLocalStorage<T>;
declare function task<F extends (...args: never[]) => unknown = (...args: unknown[]) => unknown>(moduleUrl: string | URL, exportName: string): (...args: Parameters<F>) => Promise<Awaited<ReturnType<F>>>;
interface GrantedCores {
    readonly count: number;
    readonly reason: string;
}
declare function shared(source: number | Uint8Array): Buffer;
declare function taskSignal(): AbortSignal | undefined;
declare function workerNumber(): number | undefined;
declare function isInsideWorker(): boolean;
declare function report(value: unknown): Promise<void>;
interface OutputSource {
    readonly worker: number;
    readonly stream: "stdout" | "stderr";
}
type OutputListener = (text: string, from: OutputSource) => void;
type MissingLayer = "no-cgroup" | "no-landlock" | "no-seccomp";
interface SandboxOptions {
    readonly kind: "sandbox";
    readonly read?: readonly (string | URL)[] | undefined;
    readonly write?: readonly (string | URL)[] | undefined;
    readonly network?: "none" | "host" | undefined;
    readonly env?: Readonly<Record<string, string>> | undefined;
    readonly memoryMb?: number | undefined;
    readonly maxProcesses?: number | undefined;
    readonly cpuPercent?: number | undefined;
    readonly fileMb?: number | undefined;
    readonly resultMb?: number | undefined;
    readonly outputMb?: number | undefined;
    readonly allow?: readonly MissingLayer[] | undefined;
}
interface VmOptions {
    readonly kind: "vm";
    readonly engine?: "auto" | "uml" | "gvisor" | undefined;
    readonly kernel?: string | URL | undefined;
    readonly memoryMb?: number | undefined;
    readonly core?: number | "each" | undefined;
    readonly read?: readonly (string | URL)[] | undefined;
    readonly write?: readonly (string | URL)[] | undefined;
    readonly env?: Readonly<Record<string, string>> | undefined;
    readonly fileMb?: number | undefined;
    readonly resultMb?: number | undefined;
    readonly outputMb?: number | undefined;
    readonly allow?: readonly MissingLayer[] | undefined;
}
type WorkerKind = "process" | "thread";
type ShownKind = WorkerKind | "sandbox" | "vm";
interface WorkerExit {
    readonly exitCode: number | null;
    readonly signal: string | null;
    readonly error: Error | undefined;
    readonly isUncaught?: boolean;
    readonly limit?: ReachedLimit | undefined;
    readonly lastLine?: string | undefined;
}
interface ReachedLimit {
    readonly name: WorkerLimit;
    readonly reason: string;
}
declare function partitionProblem(allow?: readonly MissingLayer[], kind?: "sandbox" | "vm"): CodedError | undefined;
declare function partitionNeeds(fn: AnyFunction): string[];
type ByPlace<T> = T | ((place: number) => T);
type Environment = Readonly<Record<string, string | undefined>>;
interface PoolOptions {
    readonly worker?: WorkerKind | SandboxOptions | VmOptions | undefined;
    readonly size?: number | {
        readonly min?: number;
        readonly max?: number;
    } | undefined;
    readonly cluster?: {
        readonly workers: unknown;
    } | undefined;
    readonly channel?: ChannelKind | "auto" | undefined;
    readonly spin?: boolean | undefined;
    readonly minSpareWorkers?: number | undefined;
    readonly maxSpareWorkers?: number | undefined;
    readonly idleTimeMs?: number | undefined;
    readonly maxWaitingTasks?: number | undefined;
    readonly maxTasksAhead?: number | "auto" | undefined;
    readonly concurrentTasksPerWorker?: number | undefined;
    readonly maxTasksPerWorker?: number | undefined;
    readonly maxRssBytes?: number | undefined;
    readonly maxHeapMb?: number | undefined;
    readonly execArgv?: ByPlace<readonly string[]> | undefined;
    readonly env?: ByPlace<Environment> | undefined;
    readonly affinity?: "none" | "spread" | undefined;
    readonly niceIncrement?: number | undefined;
    readonly setup?: (() => unknown) | undefined;
    readonly teardown?: (() => unknown) | undefined;
    readonly onOutput?: OutputListener | undefined;
    readonly startTimeoutMs?: number | undefined;
    readonly startRetryMs?: number | undefined;
    readonly graceMs?: number | undefined;
    readonly neighbourGraceMs?: number | undefined;
}
type OnReport = {
    take(value: unknown): unknown;
}["take"];
interface CallOptions {
    readonly whenBusy?: "queue" | "inline" | "reject" | undefined;
    readonly timeoutMs?: number | undefined;
    readonly maxQueueMs?: number | undefined;
    readonly signal?: AbortSignal | undefined;
    readonly onReport?: OnReport | undefined;
    readonly priority?: number | undefined;
    readonly retry?: number | undefined;
    readonly key?: string | number | undefined;
    readonly transfer?: readonly Transferable[] | undefined;
    readonly durable?: boolean | {
        readonly id: string;
    } | undefined;
}
interface HistogramSummary {
    readonly count: number;
    readonly sumMs: number;
    readonly meanMs: number;
    readonly deviationMs: number;
    readonly minMs: number;
    readonly p50Ms: number;
    readonly p95Ms: number;
    readonly p99Ms: number;
    readonly maxMs: number;
    readonly buckets: readonly (readonly [
        number,
        number
    ])[];
}
interface TaskStream<T> extends AsyncIterable<T> {
    next(): Promise<IteratorResult<T, unknown>>;
    return(value?: unknown): Promise<IteratorResult<T, unknown>>;
    throw(error?: unknown): Promise<IteratorResult<T, unknown>>;
    [Symbol.asyncIterator](): TaskStream<T>;
}
interface PoolHealth {
    readonly state: "ok" | "degraded";
    readonly failedStarts: number;
    readonly degradedMs: number;
    readonly reason: string | undefined;
}
interface WorkerStats {
    readonly id: number;
    readonly kind: ShownKind;
    readonly pid: number | undefined;
    readonly state: "starting" | "ready" | "retiring" | "closing" | "ended";
    readonly tasksInFlight: number;
    readonly tasksDone: number;
}
interface PartitionLimits extends Readonly<Record<"memoryMb" | "cpuPercent" | "maxProcesses" | "fileMb" | "resultMb" | "outputMb", number>> {
    readonly engine: "uml" | "gvisor" | undefined;
}
interface PoolStats {
    readonly channel: ChannelKind;
    readonly cores: GrantedCores & {
        readonly used: number;
    };
    readonly workers: readonly WorkerStats[];
    readonly partition: PartitionLimits | undefined;
    readonly startedWorkers: number;
    readonly exitedWorkers: number;
    readonly lostWorkers: number;
    readonly overLimit: Readonly<Record<WorkerLimit, number>> | undefined;
    readonly restarts: number;
    readonly health: PoolHealth;
    readonly waitingTasks: number;
    readonly runningTasks: number;
    readonly completedTasks: number;
    readonly failedTasks: number;
    readonly sentBytes: number;
    readonly receivedBytes: number;
    readonly waited: HistogramSummary;
    readonly ran: HistogramSummary;
}
declare class WorkerExitedError extends CodedError {
    readonly exitCode: number | null;
    readonly signal: string | null;
    constructor(message: string, { exitCode, signal, error }: WorkerExit);
}
type TaskResult<R> = R extends AsyncGenerator<infer T> ? TaskStream<T> : R extends Generator<infer T> ? TaskStream<T> : Awaited<R>;
interface Caller {
    run<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>>;
    runOnEach<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>[]>;
}
interface CloseOptions {
    readonly timeoutMs?: number | undefined;
}
interface PoolEvents {
    error: [
        error: WorkerExitedError
    ];
}
declare class Pool extends EventEmitter<PoolEvents> implements Caller, AsyncDisposable {
    #private;
    constructor(options?: PoolOptions);
    [send](): null;
    run<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>>;
    with(options: CallOptions): Caller;
    runOnEach<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>[]>;
    warm(workers?: number): Promise<void>;
    resize(size: NonNullable<PoolOptions["size"]>): void;
    recycle(): Promise<void>;
    hasRoom(): Promise<void>;
    cancelWaiting(reason?: unknown): number;
    stats(): PoolStats;
    resetTimes(): void;
    close(options?: CloseOptions): Promise<void>;
    destroy(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
interface RunOptions extends CallOptions {
    readonly pool?: Pool | undefined;
}
declare function run<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>>;
declare namespace run {
    var _a: typeof runWithOptions;
    export { _a as with };
}
declare function runWithOptions(options: RunOptions): typeof run;
declare function parallel<A extends unknown[], R>(fn: (...args: A) => R, options?: RunOptions): (...args: A) => Promise<TaskResult<R>>;
declare function warm(workers?: number): Promise<void>;
declare function parallelEvents(emitter: EventEmitter, names?: string | symbol | readonly (string | symbol)[], options?: RunOptions): Disposable;
type SandboxedOptions = ((Omit<SandboxOptions, "kind"> & {
    readonly kind?: "sandbox" | undefined;
}) | VmOptions) & Pick<CallOptions, "timeoutMs" | "signal">;
interface SandboxedFunction<A extends unknown[], R> extends AsyncDisposable {
    (...args: A): Promise<TaskResult<R>>;
    close(): Promise<void>;
}
type SourceOptions = SandboxedOptions & SourceValues;
interface SourceValues {
    readonly args?: Readonly<Record<string, unknown>> | undefined;
    readonly functions?: Readonly<Record<string, (...args: never[]) => unknown>> | undefined;
}
declare function sandboxed<A extends unknown[], R>(fn: (...args: A) => R, options?: SandboxedOptions): SandboxedFunction<A, R>;
declare function runSource(source: string, options?: SourceOptions): Promise<unknown>;
declare function hasItemIndex(error: unknown): error is Error & {
    readonly itemIndex: number;
};
type TypedArray = Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array | Float32Array | Float64Array | BigInt64Array | BigUint64Array;
interface MapProgress {
    readonly doneItems: number;
    readonly totalItems: number | undefined;
}
type MapChannel = "auto" | "shm" | "socket" | "memory" | "inline";
interface MapOptions {
    readonly pool?: Pool | undefined;
    readonly channel?: MapChannel | undefined;
    readonly ordered?: boolean | undefined;
    readonly chunk?: number | "auto" | undefined;
    readonly lead?: number | "auto" | undefined;
    readonly signal?: AbortSignal | undefined;
    readonly settled?: boolean | undefined;
    readonly retry?: number | undefined;
    readonly priority?: number | undefined;
    readonly onProgress?: ((progress: MapProgress) => void) | undefined;
}
interface FillOptions extends MapOptions {
    readonly into?: TypedArray | undefined;
}
interface MapStats {
    readonly channel: ChannelKind | "inline";
    readonly why: string;
    readonly workers: number;
    readonly doneItems: number;
    readonly totalItems: number | undefined;
    readonly chunks: number;
    readonly itemMs: number | undefined;
    readonly sendMs: number;
    readonly ranMs: number;
    readonly elapsedMs: number;
}
interface MapPromise<R> extends Promise<R> {
    stats(): MapStats;
}
declare function reduceItems<T, V>(items: Iterable<T> | AsyncIterable<T>, map: (item: T, index: number) => V | PromiseLike<V>, combine: (left: V, right: V) => V | PromiseLike<V>, initial: V, options?: MapOptions): MapPromise<V>;
interface MapStream<R> extends AsyncIterableIterator<R> {
    stats(): MapStats;
}
declare function pmap<T extends TypedArray>(items: T, fn: (item: T[number], index: number) => T[number] | PromiseLike<T[number]>, options?: FillOptions & {
    readonly settled?: false;
    readonly into?: undefined;
}): MapPromise<T>;
declare function pmap<T extends TypedArray, U extends TypedArray>(items: T, fn: (item: T[number], index: number) => U[number] | PromiseLike<U[number]>, options: FillOptions & {
    readonly settled?: false;
    readonly into: U;
}): MapPromise<U>;
declare function pmap<T, R>(items: Iterable<T> | AsyncIterable<T>, fn: (item: T, index: number) => R, options: MapOptions & {
    readonly settled: true;
}): MapPromise<PromiseSettledResult<Awaited<R>>[]>;
declare function pmap<T, R>(items: (Iterable<T> | AsyncIterable<T>) & {
    readonly BYTES_PER_ELEMENT?: never;
}, fn: (item: T, index: number) => R, options?: MapOptions): MapPromise<Awaited<R>[]>;
declare namespace pmap {
    var stream: {
        <T, R>(items: Iterable<T> | AsyncIterable<T>, fn: (item: T, index: number) => R, options: MapOptions & {
            readonly settled: true;
        }): MapStream<PromiseSettledResult<Awaited<R>>>;
        <T, R>(items: Iterable<T> | AsyncIterable<T>, fn: (item: T, index: number) => R, options?: MapOptions): MapStream<Awaited<R>>;
    };
    var filter: {
        <T extends TypedArray>(items: T, predicate: (item: T[number], index: number) => unknown, options?: MapOptions): MapPromise<T>;
        <T, S extends T>(items: Iterable<T> | AsyncIterable<T>, predicate: (item: T, index: number) => item is S, options?: MapOptions): MapPromise<S[]>;
        <T>(items: Iterable<T> | AsyncIterable<T>, predicate: (item: T, index: number) => unknown, options?: MapOptions): MapPromise<T[]>;
    };
    var pairs: {
        <T, R>(items: Iterable<T>, fn: (a: T, b: T, i: number, j: number) => R, options: MapOptions & {
            readonly settled: true;
        }): MapPromise<PromiseSettledResult<Awaited<R>>[]>;
        <T, R>(items: Iterable<T>, fn: (a: T, b: T, i: number, j: number) => R, options?: MapOptions): MapPromise<Awaited<R>[]>;
    };
    var reduce: typeof reduceItems;
}
declare function atomically<T>(fn: () => T): T;
declare function retry(): never;
declare function check(condition: boolean): void;
declare function orElse<T>(...ways: readonly (() => T)[]): T;
declare function nested<T>(fn: () => T): T;
declare function afterCommit(effect: () => void): void;
interface TCounter {
    add(change?: number): void;
    readonly value: number;
}
declare function tcounter(initial?: number): TCounter;
interface TList<K extends number | string> {
    add(key: K): boolean;
    has(key: K): boolean;
    delete(key: K): boolean;
    keys(): K[];
    [Symbol.iterator](): IterableIterator<K>;
}
declare function tlist<K extends number | string>(): TList<K>;
interface TQueue<T> {
    put(item: T): void;
    take(): T;
    peek(): T | undefined;
    readonly size: number;
}
interface QueueOptions {
    readonly capacity?: number;
}
declare function tqueue<T>(options?: QueueOptions): TQueue<T>;
interface TMap<K extends number | string, V> {
    get(key: K): V | undefined;
    has(key: K): boolean;
    set(key: K, value: V): this;
    update(key: K, change: (value: V | undefined) => V): V;
    delete(key: K): boolean;
    clear(): void;
    entries(): [
        K,
        V
    ][];
    keys(): K[];
    values(): V[];
    [Symbol.iterator](): IterableIterator<[
        K,
        V
    ]>;
    readonly size: number;
}
interface KeyRange<K> {
    readonly from?: K;
    readonly to?: K;
    readonly limit?: number;
    readonly reverse?: boolean;
}
interface TSortedMap<K extends number | string, V> extends TMap<K, V> {
    entries(range?: KeyRange<K>): [
        K,
        V
    ][];
    keys(range?: KeyRange<K>): K[];
    values(range?: KeyRange<K>): V[];
}
declare function tsortedMap<K extends number | string, V>(): TSortedMap<K, V>;
declare function tmap<K extends number | string, V>(): TMap<K, V>;
interface TVar<T> {
    get(): T;
    set(value: T): void;
    update(change: (value: T) => T): T;
    peek(): T;
}
declare function tvar<T>(initial: T): TVar<T>;
type Shared = TVar<unknown> | TMap<number | string, unknown> | TList<number | string> | TQueue<unknown> | TCounter;
declare function free(shared: Shared): void;
declare function named<T extends Shared>(name: string, make: () => T): T;
interface WhenOptions {
    readonly signal?: AbortSignal;
    readonly timeoutMs?: number;
}
declare function atomicallyWhen<T>(fn: () => T, options?: WhenOptions): Promise<T>;
interface UnitContext<Config = unknown> {
    readonly bus: Bus;
    readonly config: Config;
    readonly name: string;
    readonly instance: number;
    readonly loop: number;
    readonly signal: AbortSignal;
    executeBlocking<R>(fn: () => R, options?: BlockingOptions): Promise<TaskResult<R>>;
    setTimeout<Args extends unknown[]>(callback: (...args: Args) => void, ms?: number, ...args: Args): NodeJS.Timeout;
    setInterval<Args extends unknown[]>(callback: (...args: Args) => void, ms?: number, ...args: Args): NodeJS.Timeout;
    deploy<ChildConfig = unknown>(unit: UnitLike<ChildConfig>, options?: DeployOptions<ChildConfig>): Promise<Deployment>;
}
interface BlockingOptions {
    readonly ordered?: boolean | undefined;
    readonly timeoutMs?: number | undefined;
}
interface UnitObject<Config = unknown> {
    start?(context: UnitContext<Config>): unknown;
    stop?(): unknown;
    health?(): unknown;
    save?(): unknown;
    restore?(state: unknown): unknown;
}
type Unit<Config = unknown> = (new () => UnitObject<Config>) | UnitObject<Config> | ((context: UnitContext<Config>) => unknown);
type UnitLike<Config = unknown> = Unit<Config> | string | URL;
type UnitPlacement = "loop" | "blocking";
interface DeployOptions<Config = unknown> {
    readonly instances?: number | undefined;
    readonly on?: UnitPlacement | undefined;
    readonly config?: Config | undefined;
    readonly name?: string | undefined;
    readonly processes?: number | undefined;
    readonly blockingThreads?: number | "cores" | undefined;
    readonly startTimeoutMs?: number | undefined;
    readonly stopTimeoutMs?: number | undefined;
    readonly restarts?: RestartsOption | undefined;
}
interface RestartsOption {
    readonly max?: number | undefined;
    readonly withinMs?: number | undefined;
}
type InstanceState = "starting" | "running" | "moving" | "stopping" | "lost" | "failed";
interface InstanceStatus {
    readonly instance: number;
    readonly loop: number | undefined;
    readonly pid: number | undefined;
    readonly state: InstanceState;
    readonly version: string | undefined;
}
interface InstanceHealth {
    readonly instance: number;
    readonly isWell: boolean;
    readonly detail: unknown;
}
type RestartStrategy = "one-for-one" | "one-for-all" | "rest-for-one";
interface GroupMember extends Omit<DeployOptions, "restarts"> {
    readonly unit: UnitLike<never>;
}
interface DeployAllOptions {
    readonly strategy?: RestartStrategy | undefined;
    readonly restarts?: RestartsOption | undefined;
}
interface DeploymentGroup extends AsyncDisposable {
    readonly deployments: readonly Deployment[];
    readonly ended: Promise<void>;
    undeploy(): Promise<void>;
}
interface Deployment extends AsyncDisposable {
    readonly id: number;
    readonly name: string;
    readonly ended: Promise<void>;
    status(): Promise<readonly InstanceStatus[]>;
    health(options?: {
        readonly timeoutMs?: number | undefined;
    }): Promise<readonly InstanceHealth[]>;
    scale(instances: number): Promise<void>;
    move(instance: number, loop: number): Promise<void>;
    redeploy(): Promise<void>;
    undeploy(): Promise<void>;
}
declare function deploy<Config = unknown>(unit: UnitLike<Config>, options?: DeployOptions<Config>): Promise<Deployment>;
declare function deployAll(units: readonly GroupMember[], options?: DeployAllOptions): Promise<DeploymentGroup>;
declare function cluster(options: ClusterOptions): Promise<Cluster>;
declare const bus: Bus;
type BoundAddress = {
    readonly address: string;
    readonly port: number;
    readonly family: "IPv4" | "IPv6";
} | string;
type LoopState = "free" | "starting" | "ready" | "draining";
interface LoopStatus {
    readonly process: number;
    readonly pid: number | undefined;
    readonly generation: number;
    readonly ageMs: number;
    readonly rssBytes: number;
    readonly lastExit: string | undefined;
    readonly loop: number;
    readonly state: LoopState;
    readonly utilization: number;
    readonly openConnections: number;
    readonly connections: number;
    readonly requestsInFlight: number;
    readonly requests: number;
    readonly bytesWritten: number;
    readonly acceptsItself: boolean;
    readonly lagMs: number;
    readonly blockedMs: number;
    readonly turnedAway: number;
    readonly takenAway: number;
    readonly takenOver: number;
}
interface LoopsOptions {
    readonly processes?: number | undefined;
    readonly loops?: number | undefined;
    readonly maxRssBytes?: number | undefined;
    readonly startTimeoutMs?: number | undefined;
    readonly blockedTimeoutMs?: number | undefined;
    readonly drainTimeoutMs?: number | undefined;
    readonly control?: boolean | undefined;
    readonly cluster?: ClusterOptions | undefined;
}
interface LoopNumber {
    readonly loop: number;
    readonly pid: number;
}
declare class Loops implements AsyncDisposable {
    #private;
    readonly bus: Bus;
    constructor(options?: LoopsOptions);
    join(options: ClusterOptions): Promise<Cluster>;
    get cluster(): Cluster | undefined;
    start(): Promise<void>;
    deploy<Config = unknown>(unit: UnitLike<Config>, options?: DeployOptions<Config>): Promise<Deployment>;
    redeploy(): Promise<void>;
    deployAll(units: readonly GroupMember[], options?: DeployAllOptions): Promise<DeploymentGroup>;
    get deployments(): readonly Deployment[];
    get loops(): readonly LoopNumber[];
    status(): Promise<readonly LoopStatus[]>;
    addresses(): Promise<readonly BoundAddress[]>;
    kill(): void;
    ended(): Promise<void>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
declare function sharedMap<Value = unknown>(name: string, options?: SharedDataOptions): SharedMap<Value>;
declare function sharedLock(name: string, options?: SharedDataOptions): SharedLock;
declare function sharedCounter(name: string, options?: SharedDataOptions): SharedCounter;
export { BusAddress, BusMessage, Cluster, CodedError, Consumer, Loops, Pool, WorkerExitedError, WorkerProvider, afterCommit, atomically, atomicallyWhen, bus, check, cluster, deploy, deployAll, errorCodes, free, hasCode, hasItemIndex, isInsideWorker, named, nested, orElse, parallel, parallelEvents, partitionNeeds, partitionProblem, perWorker, pmap, propagate, report, retry, run, runSource, sandboxed, shared, sharedCounter, sharedLock, sharedMap, task, taskSignal, tcounter, tlist, tmap, tqueue, tsortedMap, tvar, warm, workerNumber };
export type { AcquireOptions, BlockingOptions, Bus, BusCodec, BusHeaders, BusStats, ByPlace, CallOptions, Caller, ChannelKind, CloseOptions, ClusterEvents, ClusterNode, ClusterOptions, CodedErrorOf, ConsumerEnd, ConsumerOptions, DeployAllOptions, DeployOptions, Deployment, DeploymentGroup, DistinctBusHeaders, ErrorCode, FillOptions, GrantedCores, GroupMember, Handler, HistogramSummary, InstanceEnd, InstanceHealth, InstanceState, InstanceStatus, InterceptedChange, InterceptedMessage, Interceptor, Interceptors, KeyRange, Lease, LendOptions, Locality, LoopNumber, LoopsOptions, MapChannel, MapOptions, MapProgress, MapPromise, MapStats, MapStream, MicroOptions, MissingLayer, MonitoredDeployment, NatsOptions, OnReport, OutgoingBusHeaders, OutputListener, OutputSource, PartitionLimits, PoolDegradedMessage, PoolEvents, PoolHealth, PoolMessage, PoolOptions, PoolRecoveredMessage, PoolResizeMessage, PoolStats, ProxyOptions, QueueOptions, ReachedLimit, Registration, ReplyOptions, ReplyRequestOptions, RestartStrategy, RestartsOption, RunOptions, SandboxOptions, SandboxedFunction, SandboxedOptions, SendOptions, ServiceOptions, ServiceProxy, Shared, SharedCounter, SharedDataOptions, SharedLock, SharedMap, SharedMapChange, SharedMapEntry, SharedMapWatchOptions, ShownKind, SourceOptions, SourceValues, StreamHandler, StreamOptions, TCounter, TList, TMap, TQueue, TSortedMap, TVar, TaskEndMessage, TaskErrorMessage, TaskMessage, TaskQueuedMessage, TaskResult, TaskStartMessage, TaskStream, TypedArray, Unit, UnitContext, UnitLike, UnitObject, UnitPlacement, VmOptions, WhenOptions, WorkerExit, WorkerExitMessage, WorkerKind, WorkerLimit, WorkerLimitMessage, WorkerMessage, WorkerReadyMessage, WorkerRestartMessage, WorkerStats };
