// What do metrics cost, in calls and requests per second, when never scraped and scraped each second?
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { beforeFile, buildBefore, hasBefore } from '../lib/before-metrics.js';
import { perSecond, runsOf } from '../lib/figures.js';
import { turnsOf } from '../lib/turns.js';
import { measureInTurns } from '../serve/in-turns.js';
import { startCommand } from '../serve/servers.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/**
 * `before`: manycore before it counted anything, where it can be built. `off`: without an agent and an
 * endpoint. `quiet`: with both, never scraped. `scraped`: with both, scraped each second.
 */
const contendersNow = () => [...(hasBefore() ? ['before'] : []), 'off', 'quiet', 'scraped'];
/**
 * Differences are small: contenders run beside each other, and take many short turns. The count of a window
 * varies by some 13 %, so that 12 windows left each round's ratio uncertain by 7 %.
 */
const windows = 32;
const windowMs = 250;
const scrapeEveryMs = 1000;
/** From the port of a server to that of its metrics, both below those of clients. */
const metricsBelow = 12_000;

const isMetered = (contender) => contender === 'quiet' || contender === 'scraped';
const environmentOf = (contender) => (isMetered(contender) ? {} : { MANYCORE_AGENT: '0' });
const bundled = (contender, name) =>
  contender === 'before' ? beforeFile(`dist/bundle/${name}`) : here(`../../dist/bundle/${name}`);

const agent = new Agent({ keepAlive: true });

async function scrape(url) {
  const [response] = await once(get(url, { agent }), 'response');
  const page = await text(response);
  if (!page.includes('manycore_thread_up{')) throw new Error(`no metrics at ${url}`);
}

/** Warms up scrapes: a program is scraped for hours, so the cost of the first times is not measured. */
async function warmScrapes(url) {
  for (let count = 0; count < 10; count += 1) {
    await setTimeout(150);
    await scrape(url);
  }
}

/** Scrapes in the middle of each second, until the returned function is called. */
function keepScraping(url) {
  const over = new AbortController();
  const { signal } = over;
  const keep = async () => {
    for (let waitMs = scrapeEveryMs / 2; ; waitMs = scrapeEveryMs) {
      await setTimeout(waitMs, undefined, { signal });
      void scrape(url);
    }
  };
  void keep().catch(() => {}); // it is over
  return () => over.abort();
}

/** Starts a program with a pool, which calls for a while on command. */
async function startCaller(contender) {
  const env = { ...process.env, ...environmentOf(contender) };
  const args = [bundled(contender, 'index.js'), isMetered(contender) ? 'metered' : 'alone'];
  const child = fork(here('../lib/metered-caller.js'), args, { env });
  const [{ url }] = await once(child, 'message');
  const call = async (ms) => {
    child.send(ms);
    const [{ perSecond: count }] = await once(child, 'message');
    return count;
  };
  return { url, call, found: [] };
}

async function measureCalls(scale) {
  const contenders = contendersNow();
  const callers = await Promise.all(contenders.map(startCaller));
  for (const [at, { url, call }] of callers.entries()) {
    const warm = call(2000);
    if (contenders[at] === 'scraped') await warmScrapes(url);
    await warm;
  }
  for (let window = 0; window < windows * scale; window += 1) {
    for (const [at, { url, call, found }] of turnsOf(callers, window)) {
      // as often as in a second of its own: each fourth window
      const isScraped = contenders[at] === 'scraped' && window % 4 === 0;
      const scraped = isScraped && scrape(url);
      found.push(await call(windowMs));
      await scraped;
    }
  }
  // The mean: one window in four has a scrape in it.
  const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;
  return Object.fromEntries(
    contenders.map((contender, at) => [contender, { perSecond: mean(callers[at].found) }]),
  );
}

const metricsOf = ({ port }) => `http://127.0.0.1:${port - metricsBelow}/metrics`;

function startServed(contender) {
  const program = here('../serve/hello.js');
  const command = [process.execPath, bundled(contender, 'main.js'), 'serve', '-P', '1', '-L', '1'];
  return startCommand(
    (port) => [
      ...command,
      ...(isMetered(contender) ? ['--metrics', String(port - metricsBelow)] : []),
      program,
    ],
    environmentOf(contender),
  );
}

/** Compares with the version that never counted, or, if it cannot be built, with `off`. */
const bar = (setting, contender, atLeast, says) => ({
  says: `${setting}, ${says}, against ${hasBefore() ? 'manycore before it' : 'none'}`,
  figure: 'perSecond',
  of: { setting, contender },
  against: runsOf(setting, [hasBefore() ? 'before' : 'off']),
  atLeast,
});

const runs = () => ['calls', 'http'].flatMap((setting) => runsOf(setting, contendersNow()));
const bars = () =>
  ['calls', 'http'].flatMap((setting) => [
    bar(setting, 'quiet', 0.995, 'nobody listening'),
    bar(setting, 'scraped', 0.98, 'scraped each second'),
  ]);

export default {
  figures: { perSecond: perSecond('calls or requests') },
  settings: {
    calls: { says: 'calls that do nothing, 64 waiting, 2 workers' },
    http: { says: 'hello world on one loop under `manycore serve`, 64 connections that are kept' },
  },
  rounds: 15,
  isTogether: true,
  deadlineMs: 240_000,
  plan() {
    buildBefore();
    return { runs: runs(), bars: bars() };
  },
  async measure({ setting, scale }) {
    if (setting === 'calls') return await measureCalls(scale);
    const warm = (contender, server) =>
      contender === 'scraped' ? warmScrapes(metricsOf(server)) : undefined;
    const beside = (contender, server) =>
      contender === 'scraped' ? keepScraping(metricsOf(server)) : () => {};
    const all = await measureInTurns(contendersNow(), { scale, start: startServed, warm, beside });
    return Object.fromEntries(
      Object.entries(all).map(([contender, figures]) => [
        contender,
        { perSecond: figures.perSecond },
      ]),
    );
  },
};
