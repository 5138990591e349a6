// Validators of files: entity tags, and the comparison of If-Range. RFC 9110, 8.8 and 13.1.5.

import type { Stats } from 'node:fs';
import type { ServerResponse } from 'node:http';

/** A file that has not changed for this time has a strong validator: Apache's rule. */
const settledMs = 1000;

/**
 * Sets the tag of a file, unless the response has one. It is weak while a second change of the file could leave
 * its time as it is, and where a middleware has put a `write` of its own on the response (compression).
 */
export function setEntityTag(response: ServerResponse, { size, mtime }: Stats): void {
  if (response.hasHeader('etag')) return;
  const isWeak = Date.now() - mtime.getTime() < settledMs || Object.hasOwn(response, 'write');
  const tag = `"${size.toString(16)}-${mtime.getTime().toString(16)}"`;
  response.setHeader('ETag', isWeak ? `W/${tag}` : tag);
}

/** True: a range may be sent for this `If-Range`, because the client has parts of the same version. */
export function isCurrent(
  ifRange: string | readonly string[] | undefined,
  response: ServerResponse,
): boolean {
  if (ifRange === undefined) return true;
  const tag = String(response.getHeader('etag'));
  if (tag.startsWith('W/')) return false;
  const modified = response.getHeader('last-modified');
  return ifRange === tag || ifRange === modified;
}
