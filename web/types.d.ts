// Style sheets, which the bundler collects; and what of Node's clock the types of agents come with.
declare module '*.css';
interface Performance {
  readonly eventLoopUtilization: typeof import('node:perf_hooks').performance.eventLoopUtilization;
}
