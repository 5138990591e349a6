// The remote control: sends presses, and shows how long this phone waited for the answer.

const shownAnswers = 24;
const main = document.querySelector('main');
const find = (id) => document.getElementById(id);
let about = { modes: {} };
let state = { mode: 'idle', isStudy: true, text: 'starting' };

const events = new EventSource('/events');
events.addEventListener('about', ({ data }) => {
  about = JSON.parse(data);
  find('modes').replaceChildren(...Object.keys(about.modes).map(modeButton));
});
events.addEventListener('state', ({ data }) => {
  state = JSON.parse(data);
  showState();
});
events.addEventListener('error', () => {
  find('player').textContent = 'The TV does not answer.';
});

for (const button of document.querySelectorAll('[data-button]')) {
  button.addEventListener('click', () => press(button.dataset.button, button.textContent));
}

async function press(name, label) {
  const mode = state.mode;
  const startMs = performance.now();
  find('what').textContent = `${label}: waiting for the answer`;
  try {
    const answer = await fetch(`/press/${name}`, { method: 'POST' });
    const ms = performance.now() - startMs;
    if (!answer.ok) throw new Error((await answer.json()).error);
    find('what').textContent = `${label}, answered in`;
    find('took').textContent = ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
    addAnswer(ms, mode);
    await fetch(`/felt?ms=${ms}`, { method: 'POST' });
  } catch (error) {
    find('what').textContent = `${label} failed: ${error.message}`;
    find('took').textContent = '–';
  }
}

function modeButton(name) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = name;
  button.dataset.mode = name;
  button.addEventListener('click', () => fetch(`/mode/${name}`, { method: 'POST' }));
  return button;
}

function showState() {
  main.dataset.mode = state.mode;
  for (const button of find('modes').children) {
    button.setAttribute('aria-pressed', String(button.dataset.mode === state.mode));
    button.disabled = state.isStudy;
  }
  const description = about.modes[state.mode]?.description ?? '';
  find('description').textContent = state.isStudy
    ? `The study is ${state.text} ${state.mode}: ${description}. Modes can be switched when it is over.`
    : `${state.mode}: ${description}.`;
  const playing = state.pid === undefined ? 'is off' : state.isPlaying ? 'plays' : 'pauses';
  find('player').textContent = `${state.player} ${playing}, volume ${state.volumePercent} %`;
}

/** A bar for each of the last answers; its height is the logarithm of the time, 0.3 ms to 1 s. */
function addAnswer(ms, mode) {
  const bar = document.createElement('i');
  bar.dataset.mode = mode;
  const share = Math.log(ms / 0.3) / Math.log(1000 / 0.3);
  bar.style.height = `${Math.max(4, Math.min(100, share * 100))}%`;
  bar.title = `${mode}: ${ms.toFixed(1)} ms`;
  find('answers').append(bar);
  while (find('answers').children.length > shownAnswers) find('answers').firstChild.remove();
}
