// What is thrown into the client of NATS ends its connection, so nothing is.

import { announcements, messageOf } from '../internal/index.js';

export function guarded(work: () => void): void {
  try {
    work();
  } catch (error) {
    announcements.clusterRefused.publish({ why: messageOf(error) });
  }
}
