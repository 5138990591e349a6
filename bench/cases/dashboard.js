// Does the dashboard's page stay smooth with 64 workers and 10,000 tasks a second, and what does its server cost?
import { fork, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { counted } from '../lib/figures.js';
import { processCpuUs } from '../lib/processes.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const warmMs = 5000;
const windowMs = 10_000;
const of = { setting: 'busy', contender: 'manycore' };
const workersOf = { busy: 64, few: 4 };

export default {
  figures: {
    fps: { says: 'frames', unit: '/s', better: 'higher' },
    worstFps: { says: 'frames in the worst second', unit: '/s', better: 'higher' },
    cpu: counted('server, of one core', '%'),
    agentCpu: counted('program that is looked at, of one core', '%'),
  },
  settings: {
    busy: { says: '64 workers, 10,000 tasks a second, made up; the agent and its slices are real' },
    few: { says: 'the same with 4 workers' },
  },
  runs: [of, { setting: 'few', contender: 'manycore' }],
  rounds: 5,
  deadlineMs: 60_000,
  bars: [
    { says: 'dashboard, frames a second in headless Chromium', figure: 'fps', of, atLeast: 30 },
    { says: "dashboard's server, of one core", figure: 'cpu', of, atMost: 3 },
  ],
  async measure({ scale, setting }) {
    const runtime = mkdtempSync(join(tmpdir(), 'manycore-bench-'));
    process.env.XDG_RUNTIME_DIR = runtime;
    const program = fork(here('../dashboard/program.js'), [String(workersOf[setting])]);
    const server = spawn(
      process.execPath,
      [here('../../dist/bundle/main.js'), 'dashboard', '--port', '0'],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const address = await new Promise((resolve, reject) => {
      server.once('exit', () => reject(new Error('the dashboard does not start')));
      server.stdout.once('data', (text) => resolve(/^open (\S+)/.exec(String(text))[1]));
    });
    const { newPage } = await import('../dashboard/browser.js');
    const page = await newPage();
    await page.goto(address);
    await page.locator(`a[href="#${program.pid}"]`).click({ timeout: 20_000 });
    await page.locator('.lanes canvas').waitFor();
    await page.waitForTimeout(warmMs);
    const window = windowMs * scale;
    const before = { server: processCpuUs(server.pid), program: processCpuUs(program.pid) };
    const start = performance.now();
    const seconds = await page.evaluate(countFrames, window);
    const elapsedUs = (performance.now() - start) * 1000;
    const cpu = (100 * (processCpuUs(server.pid) - before.server)) / elapsedUs;
    const agentCpu = (100 * (processCpuUs(program.pid) - before.program)) / elapsedUs;
    const drawn = await page.evaluate(drawnShare);
    if (drawn < 0.3) throw new Error(`only ${Math.round(100 * drawn)} % of the time line is drawn`);
    const rates = await page.locator('.lane-names .rate').allTextContents();
    if (rates.length !== workersOf[setting]) throw new Error(`${rates.length} workers are shown`);
    rmSync(runtime, { recursive: true });
    const frames = seconds.reduce((sum, count) => sum + count, 0);
    return { fps: frames / seconds.length, worstFps: Math.min(...seconds), cpu, agentCpu };
  },
};

/** In the page: frames of each whole second. */
function countFrames(windowMs) {
  return new Promise((resolve) => {
    const seconds = Array(Math.floor(windowMs / 1000)).fill(0);
    const start = performance.now();
    const count = (now) => {
      const second = Math.floor((now - start) / 1000);
      if (second >= seconds.length) resolve(seconds);
      else {
        if (second >= 0) seconds[second] += 1;
        requestAnimationFrame(count);
      }
    };
    requestAnimationFrame(count);
  });
}

/** In the page: how much of the right third of the time line is not empty. */
function drawnShare() {
  const canvas = document.querySelector('.lanes canvas');
  const third = Math.floor(canvas.width / 3);
  const { data } = canvas
    .getContext('2d')
    .getImageData(canvas.width - third, 0, third, canvas.height);
  let count = 0;
  for (let at = 3; at < data.length; at += 4) if (data[at] > 0) count += 1;
  return count / (data.length / 4);
}
