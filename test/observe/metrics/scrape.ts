// Scrapes metrics as Prometheus does, for tests.

import { get } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Line {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Samples of a text in the format of Prometheus. */
export function linesOf(scraped: string): Line[] {
  const lines = scraped.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', , labels = '', value] = /^(\w+)({(.*)})? (\S+)$/.exec(line) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, of]) => [key, of]);
    return { name, labels: Object.fromEntries(pairs), value: Number(value) };
  });
}

/** Values of a metric, of the samples with these labels. */
export function valuesOf(
  lines: readonly Line[],
  name: string,
  labels: Readonly<Record<string, string | number>> = {},
): number[] {
  const wanted = Object.entries(labels);
  return lines
    .filter((line) => line.name === name)
    .filter((line) => wanted.every(([key, value]) => line.labels[key] === String(value)))
    .map(({ value }) => value);
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export function asked(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, headers }, (response) => {
      const { statusCode = 0 } = response;
      const type = response.headers['content-type'] ?? '';
      text(response).then((body) => resolve({ status: statusCode, type, body }), reject);
    });
    request.on('error', reject);
  });
}

/** Reads the endpoint now. */
export async function scrape(url: string): Promise<Line[]> {
  return linesOf((await asked(url)).body);
}
