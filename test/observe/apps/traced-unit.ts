// A unit that answers with its trace, that of its own task, and the number of metrics in its SDK.

import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { instrument } from '../../../src/observe/opentelemetry/opentelemetry.js';
import { run, type UnitContext } from '../../../src/public.js';
import { Reader } from '../opentelemetry/reader.js';
import { spinInSpan } from '../opentelemetry/tracing.js';

const reader = new Reader();
instrument({ meterProvider: new MeterProvider({ readers: [reader] }) });

export default ({ bus }: UnitContext): void => {
  bus.consumer('where', async (message) => {
    const handler = spinInSpan(0);
    const inTask = await run(() => spinInSpan(0));
    const { resourceMetrics } = await reader.collect();
    const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics).length;
    message.reply({ handler, task: inTask, metrics });
  });
};
