interface MetricsSource {
    getMetricsAsJSON(): Promise<readonly object[]>;
}
declare function metricsFrom(registry: MetricsSource): void;
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
type Sticky = "address" | {
    readonly cookie: string;
} | {
    readonly header: string;
} | {
    readonly query: string;
};
type AccessFormat = "common" | "json";
interface OutputLine {
    readonly timeMs: number;
    readonly name: string;
    readonly process: number;
    readonly loop: number | undefined;
    readonly stream: "stdout" | "stderr";
    readonly text: string;
}
interface Range {
    readonly min: number;
    readonly max: number;
}
type Plan = "event" | "prefork" | "worker" | "perchild";
type Placement = "least-loaded" | "round-robin" | "kernel" | "reuseport";
interface ServeOptions {
    readonly name?: string | undefined;
    readonly plan?: Plan | undefined;
    readonly processes?: number | Range | undefined;
    readonly maxProcesses?: number | undefined;
    readonly loops?: number | Range | undefined;
    readonly minSpare?: number | undefined;
    readonly maxSpare?: number | undefined;
    readonly placement?: Placement | undefined;
    readonly sticky?: Sticky | undefined;
    readonly port?: number | undefined;
    readonly host?: string | undefined;
    readonly unix?: string | undefined;
    readonly serverNames?: readonly string[] | undefined;
    readonly tls?: TlsOptions | undefined;
    readonly listenFds?: readonly number[] | undefined;
    readonly user?: string | number | undefined;
    readonly group?: string | number | undefined;
    readonly args?: readonly string[] | undefined;
    readonly maxConnections?: number | undefined;
    readonly maxConnectionsPerProcess?: number | undefined;
    readonly maxRequestsPerProcess?: number | undefined;
    readonly maxAgeMs?: number | undefined;
    readonly maxRssBytes?: number | undefined;
    readonly maxFailures?: number | undefined;
    readonly reloadAt?: string | undefined;
    readonly startTimeoutMs?: number | undefined;
    readonly blockedTimeoutMs?: number | undefined;
    readonly drainTimeoutMs?: number | undefined;
    readonly overloadMs?: number | undefined;
    readonly onOutput?: ((line: OutputLine) => void) | undefined;
    readonly accessLog?: AccessLogOptions | undefined;
    readonly rescue?: boolean | undefined;
    readonly control?: boolean | undefined;
    readonly status?: number | StatusAddress | undefined;
    readonly health?: number | StatusAddress | undefined;
}
interface AccessLogOptions {
    readonly format?: AccessFormat | undefined;
    readonly onLines: (lines: string) => void;
}
interface TlsOptions {
    readonly cert: string;
    readonly key: string;
    readonly http2?: boolean | undefined;
    readonly names?: Readonly<Record<string, TlsCertificate>> | undefined;
}
interface TlsCertificate {
    readonly cert: string;
    readonly key: string;
}
interface StatusAddress {
    readonly host: string;
    readonly port: number;
}
type BoundAddress = {
    readonly address: string;
    readonly port: number;
    readonly family: "IPv4" | "IPv6";
} | string;
interface Self {
    readonly process: number | undefined;
    readonly loop: number | undefined;
    readonly instance: number | undefined;
    readonly name: string | undefined;
    readonly generation: number | undefined;
}
type OnlyOneFunction = (signal: AbortSignal) => unknown;
type ReadinessCheck = () => boolean | Promise<boolean>;
declare const self: Self;
declare function onlyOne(fn: OnlyOneFunction): void;
declare function readiness(check: ReadinessCheck): void;
declare function stickyId(): string;
interface ServedApp extends AsyncDisposable {
    readonly name: string;
    readonly addresses: readonly BoundAddress[];
    readonly pids: readonly number[];
    readonly statusPort: number | undefined;
    readonly healthPort: number | undefined;
    status(): LoopStatus[];
    reload(): Promise<void>;
    scale(processes: number | Range): Promise<void>;
    readonly closed: Promise<void>;
    close(): Promise<void>;
}
declare function serve(app: string | URL, options?: ServeOptions): Promise<ServedApp>;
export { metricsFrom, onlyOne, readiness, self, serve, stickyId };
export type { AccessFormat, AccessLogOptions, BoundAddress, LoopState, LoopStatus, MetricsSource, OnlyOneFunction, OutputLine, Placement, Plan, Range, ReadinessCheck, Self, ServeOptions, ServedApp, StatusAddress, Sticky, TlsCertificate, TlsOptions };
