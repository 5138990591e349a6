// Answers for tools of NATS about the services of a loop, by ADR-32 ("micro"): PING, INFO and STATS on the
// subjects `$SRV.VERB`, `$SRV.VERB.NAME` and `$SRV.VERB.NAME.ID`, in plain JSON and unsigned. A method is an
// endpoint. Calls themselves are frames of the bus, which such tools cannot send.

import { randomBytes } from 'node:crypto';
import type { AdvertisedService } from '../../bus/index.js';
import { announcements, messageOf } from '../../lib/index.js';
import { listen } from '../nats/listen.js';
import type { NatsConnection, NatsMessage } from '../nats/nats.js';

/** Prefix of the subjects. */
export const microPrefix = '$SRV.';
/** The limit of an error text in an answer, in characters. */
const maxErrorChars = 1000;
const idBytes = 11;
const nsPerMs = 1e6;

/** Subject and queue group of the service's consumer. */
interface Endpoint {
  readonly subject: string;
  readonly queueGroup: string;
}

/** Answers for this service until the returned function is called, or the connection ends. */
export function answerMicro(
  connection: NatsConnection,
  service: AdvertisedService,
  endpoint: Endpoint,
): () => void {
  const { name } = service.micro;
  const id = randomBytes(idBytes).toString('hex');
  const answers = {
    PING: () => identity('ping', id, service),
    INFO: () => ({ ...identity('info', id, service), ...infoOf(service, endpoint) }),
    STATS: () => ({ ...identity('stats', id, service), ...statsOf(service, endpoint) }),
  };
  let isRefused = false;
  const onError = (error: unknown): void => {
    if (isRefused || connection.isClosed()) return;
    isRefused = true; // the server refuses each subject
    const what = `the service ${name} is not shown to tools of NATS`;
    const why = `${what}, and works all the same: ${messageOf(error)}`;
    announcements.clusterRefused.publish({ why });
  };
  const subscriptions = Object.entries(answers).flatMap(([verb, answer]) => {
    const onMessage = ({ reply }: NatsMessage): void => {
      if (reply === undefined || reply === '' || connection.isDraining()) return;
      connection.publish(reply, Buffer.from(JSON.stringify(answer())));
    };
    const all = `${microPrefix}${verb}`;
    const subjects = [all, `${all}.${name}`, `${all}.${name}.${id}`];
    return subjects.map((subject) => listen(connection, subject, onMessage, { onError }));
  });
  return () => {
    if (connection.isDraining() || connection.isClosed()) return;
    for (const each of subscriptions) each.unsubscribe();
  };
}

function identity(kind: string, id: string, { micro }: AdvertisedService) {
  const { name, version, metadata } = micro;
  return { type: `io.nats.micro.v1.${kind}_response`, name, id, version, metadata };
}

function endpointsOf({ methods }: AdvertisedService, { subject, queueGroup }: Endpoint) {
  return [...methods].map(([method, stats]) => {
    // The names of endpoints have fewer characters than those of methods.
    const name = method.replaceAll(/[^\w-]/g, '_');
    return { stats, shown: { name, subject, queue_group: queueGroup } };
  });
}

function infoOf(service: AdvertisedService, endpoint: Endpoint) {
  const endpoints = endpointsOf(service, endpoint).map(({ shown }) => ({ ...shown, metadata: {} }));
  return { description: service.micro.description, endpoints };
}

function statsOf(service: AdvertisedService, endpoint: Endpoint) {
  const endpoints = endpointsOf(service, endpoint).map(({ stats, shown }) => {
    const { requests, errors, runMs, lastError } = stats;
    const processingNs = Math.round(runMs * nsPerMs);
    return {
      ...shown,
      num_requests: requests,
      num_errors: errors,
      last_error: lastError.slice(0, maxErrorChars),
      processing_time: processingNs,
      average_processing_time: requests === 0 ? 0 : Math.round(processingNs / requests),
    };
  });
  return { started: service.startedAt.toISOString(), endpoints };
}
