import { MeterProvider, TracerProvider } from "@opentelemetry/api";
interface InstrumentOptions {
    readonly meterProvider?: MeterProvider | undefined;
    readonly tracerProvider?: TracerProvider | undefined;
}
declare function instrument(options?: InstrumentOptions): void;
export { instrument };
export type { InstrumentOptions };
