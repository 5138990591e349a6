// The answers of a server to the probes of a load balancer or an orchestrator.

export interface HealthAnswer {
  readonly status: number;
  readonly body: object;
}

/** Answers a request for `path`; `obstacles` are reasons why the server should get no clients. */
export function healthAnswer(path: string, obstacles: () => readonly string[]): HealthAnswer {
  if (path === '/livez') return { status: 200, body: { alive: true } };
  if (path !== '/readyz') return { status: 404, body: { message: 'there are /livez and /readyz' } };
  const reasons = obstacles();
  return reasons.length === 0
    ? { status: 200, body: { ready: true } }
    : { status: 503, body: { ready: false, reasons } };
}
