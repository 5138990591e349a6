// The TV page: what plays, the live chart, and the table of what was measured.
import { LiveChart } from './chart.js';

const main = document.querySelector('main');
const find = (id) => document.getElementById(id);
let chart;
let about = { modes: {} };

const events = new EventSource('/events');
const on = (name, listener) => {
  events.addEventListener(name, ({ data }) => listener(JSON.parse(data)));
};

on('about', (received) => {
  about = received;
  const { load, modes } = received;
  chart?.destroy();
  chart = new LiveChart(find('chart'), Object.keys(modes));
  find('legend').replaceChildren(
    ...Object.keys(modes).map((name) => legendItem(name, name)),
    legendItem('visitor', 'a press of yours'),
  );
  find('about').textContent =
    `${load.ratePerSecond} presses a second from a process of their own. A ${load.width} × ${load.height} ` +
    `PNG takes ${load.decodeMs.toFixed(0)} ms to decode here and is due every ` +
    `${load.intervalMs.toFixed(0)} ms: ${load.loadPercent} % of one core. The player is ${load.playedBy}.`;
});

on('state', ({ mode, text, glow, player, isPlaying, pid, volumePercent }) => {
  main.dataset.mode = mode;
  find('mode').textContent = mode;
  find('phase').textContent = text;
  const doing = pid === undefined ? 'is off' : isPlaying ? 'plays' : 'pauses';
  find('playing').textContent =
    `${player} ${doing}${pid === undefined ? '' : ` (process ${pid}), volume ${volumePercent} %`}`;
  find('screen').classList.toggle('is-off', !isPlaying);
  find('screen').style.setProperty('--glow', glow);
});

on('picture', ({ glow }) => find('screen').style.setProperty('--glow', glow));
on('samples', ({ nowMs, samples }) => chart?.add(nowMs, samples));
on('results', (results) => {
  const idle = results.find(({ mode }) => mode === 'idle');
  find('results').replaceChildren(...results.map((result) => row(result, idle)));
});
events.addEventListener('error', () => {
  find('phase').textContent = 'the server does not answer';
});

function row({ mode, p50Ms, p95Ms, p99Ms, maxMs, decodesPerSecond }, idle) {
  const ratio =
    idle === undefined || mode === 'idle' ? '–' : `${(p95Ms / idle.p95Ms).toFixed(1)} ×`;
  const decodes = decodesPerSecond === 0 ? '–' : decodesPerSecond.toFixed(1);
  const line = document.createElement('tr');
  line.dataset.mode = mode;
  const texts = [mode, ...[p50Ms, p95Ms, p99Ms, maxMs].map(formatNumber), ratio, decodes];
  line.append(
    ...texts.map((text) => Object.assign(document.createElement('td'), { textContent: text })),
  );
  line.firstChild.className = 'mode';
  const description = Object.assign(document.createElement('small'), {
    textContent: about.modes[mode]?.description,
  });
  line.firstChild.append(description);
  return line;
}

function legendItem(name, text) {
  const item = document.createElement('li');
  if (name === 'visitor') item.className = 'visitor';
  else item.dataset.mode = name;
  item.textContent = text;
  return item;
}

function formatNumber(ms) {
  return ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0);
}
