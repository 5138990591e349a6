// The page of a report in the browser: shows the list of pairs, or the two sources of the pair that the
// address names, `#pair-3`. Texts of files become text nodes and nothing else.

const { pairs, texts } = JSON.parse(document.querySelector('#data').textContent);
const [list, view] = document.querySelectorAll('main');
const listTitle = document.title;

// Hues of neighbours are far apart; the number at each match distinguishes those that colours cannot.
const hues = [50, 215, 135, 330, 25, 190, 275, 90, 245, 0];

let shown; // the pair on the screen, none when it is the list
let selected = 0; // its match that was jumped to

addEventListener('hashchange', show);
addEventListener('keydown', onKey);
view.addEventListener('click', onClick);
show();

function show() {
  const rank = Number(location.hash.match(/^#pair-(\d+)$/)?.[1]);
  const last = shown;
  shown = pairs[rank - 1];
  list.hidden = shown !== undefined;
  view.hidden = shown === undefined;
  document.title = shown ? `${nameOf(shown.a)} and ${nameOf(shown.b)}` : listTitle;
  if (shown === undefined) {
    list.querySelector(`a[href="#pair-${last?.rank}"]`)?.focus(); // where the reader was
    return;
  }
  view.replaceChildren(makeHeader(shown), makeSource('a'), makeSource('b'));
  select(0, 'instant');
}

function makeHeader({ rank, similarity, matches }) {
  const bar = element('nav', { className: 'bar', ariaLabel: 'Pairs' });
  bar.append(
    makeGoTo('', 'All pairs'),
    makeGoTo(rank - 1, '←', 'The pair before'),
    makeGoTo(rank + 1, '→', 'The next pair'),
    element('h1', {}, `${rank}. ${formatShare(similarity)} alike`),
    element('p', { className: 'faint keys' }, ...keyHelp()),
  );
  const chips = element('nav', { className: 'chips', ariaLabel: 'Matches' });
  chips.append(...matches.map(makeChip));
  return element('header', {}, bar, chips);
}

/** A button for the pair with this rank, or for the list. */
function makeGoTo(rank, text, ariaLabel = text) {
  const button = element('button', { type: 'button', ariaLabel }, text);
  button.disabled = rank !== '' && pairs[rank - 1] === undefined;
  button.addEventListener('click', () => {
    location.hash = rank === '' ? '' : `pair-${rank}`;
  });
  return button;
}

function keyHelp() {
  const keys = { n: 'next match', p: 'the one before', Esc: 'all pairs' };
  return Object.entries(keys).flatMap(([key, does]) => [element('kbd', {}, key), ` ${does} `]);
}

function makeChip({ a, b, tokens }, index) {
  const lines = `${formatLines(a)} = ${formatLines(b)}`;
  const title = `match ${index + 1}: ${tokens} tokens, lines ${lines}`;
  const number = element('b', {}, String(index + 1));
  return mark(element('button', { type: 'button', title }, number, ` ${lines}`), index);
}

function makeSource(side) {
  const path = shown[side];
  const ranges = shown.matches.map((match) => match[side]);
  // Focus makes the arrow keys scroll it.
  const code = element('div', { className: 'code', tabIndex: 0, role: 'group', ariaLabel: path });
  code.append(...makeLines(texts[path], ranges));
  const title = element('h2', { title: path }, element('bdi', {}, path));
  return element('section', {}, title, code);
}

/** One element a line: its number, then its text with the parts that match in their colours. */
function makeLines(text, ranges) {
  const rows = text.split(/\r\n?|\n/).map((line, at) => ({ line, number: at + 1, parts: [] }));
  ranges.forEach((range, index) => {
    for (let number = range.firstLine; number <= range.lastLine; number++) {
      const { line, parts } = rows[number - 1];
      const isFirst = number === range.firstLine;
      const from = isFirst ? range.firstColumn - 1 : line.search(/\S|$/);
      const to = number === range.lastLine ? range.lastColumn : line.length;
      parts.push({ from, to, index, isFirst });
    }
  });
  return rows.map(makeLine);
}

function makeLine({ line, number, parts }) {
  const margin = element('span', { className: 'number' }, String(number));
  const row = element('div', { className: 'line' }, margin);
  let end = 0;
  for (const { from, to, index, isFirst } of parts.sort((one, other) => one.from - other.from)) {
    if (from === to) continue; // an empty line in a match
    const matched = mark(element('mark', {}, line.slice(from, to)), index);
    if (isFirst) matched.dataset.first = String(index + 1);
    row.append(line.slice(end, from), matched);
    end = to;
  }
  row.append(`${line.slice(end)}\n`);
  if (parts.length > 0) mark(margin, parts[0].index);
  return row;
}

function onClick({ target }) {
  const index = target.closest('[data-match]')?.dataset.match;
  if (index !== undefined && getSelection().isCollapsed) select(Number(index));
}

function onKey({ key, ctrlKey, metaKey, altKey }) {
  if (shown === undefined || ctrlKey || metaKey || altKey) return;
  const count = shown.matches.length;
  if (key === 'n') select((selected + 1) % count);
  else if (key === 'p') select((selected + count - 1) % count);
  else if (key === 'Escape') location.hash = '';
}

/** Brings both sides of a match to the same height; `behavior` as scrollBy takes it. */
function select(index, behavior = 'auto') {
  selected = index;
  for (const each of view.querySelectorAll('[data-match]')) {
    each.classList.toggle('is-selected', each.dataset.match === String(index));
  }
  for (const code of view.querySelectorAll('.code')) {
    const first = code.querySelector(`mark[data-match="${index}"]`);
    const below = first.getBoundingClientRect().top - code.getBoundingClientRect().top;
    code.scrollBy({ top: below - code.clientHeight / 4, behavior });
  }
  const chips = view.querySelector('.chips');
  const chip = chips.children[index];
  chips.scrollTo({ left: chip.offsetLeft - chips.clientWidth / 2, behavior });
}

/** Gives an element the colour of a match, and makes it one to click. */
function mark(marked, index) {
  marked.dataset.match = String(index);
  marked.style.setProperty('--hue', String(hues[index % hues.length]));
  return marked;
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function formatLines({ firstLine, lastLine }) {
  return firstLine === lastLine ? String(firstLine) : `${firstLine}–${lastLine}`;
}

function formatShare(share) {
  return `${share < 1 ? Math.min(99, Math.round(share * 100)) : 100} %`;
}

function nameOf(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}
