interface EndpointOptions {
    readonly port?: number | undefined;
    readonly host?: string | undefined;
}
interface MetricsEndpoint extends AsyncDisposable {
    readonly port: number;
    readonly url: string;
    close(): Promise<void>;
}
declare function serveMetrics(options?: EndpointOptions): Promise<MetricsEndpoint>;
interface MetricsOptions {
    readonly prefix?: string | undefined;
}
interface MetricsRegistry {
    registerMetric(metric: object): void;
    getSingleMetric(name: string): unknown;
}
declare function registerMetrics(registry: MetricsRegistry, options?: MetricsOptions): void;
declare function metricsText(): Promise<string>;
export { metricsText, registerMetrics, serveMetrics };
export type { EndpointOptions, MetricsEndpoint, MetricsOptions, MetricsRegistry };
