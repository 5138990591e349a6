// The report as one page that needs nothing beside it: its style, its script, the pairs and the texts of
// their files are inside. What comes from files is text to the page, never markup: it is escaped here,
// and page/view.js makes text nodes of it.
import { readFileSync } from 'node:fs';
import { count, formatShare, summarize } from './text.js';

const read = (name) => readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8');

/** The page of a report with its first `limit` pairs; `files` are as files.js reads them. */
export function makePage(report, files, limit) {
  const pairs = report.pairs.slice(0, limit);
  const parts = {
    title: escapeText(`Copied programs: ${report.folder}`),
    style: `<style>\n${read('style.css')}</style>`,
    script: `<script type="module">\n${read('view.js')}</script>`,
    data: makeData({ pairs, texts: textsOf(pairs, files) }),
    summary: escapeText(summarize(report)),
    pairs: makeList(pairs, report.pairs.length),
    notes: makeNotes(report),
  };
  // A function, because in a replacement text `$&` has a meaning.
  return read('page.html').replace(/<!-- (\w+) -->/g, (_mark, name) => parts[name]);
}

function textsOf(pairs, files) {
  const wanted = new Set(pairs.flatMap(({ a, b }) => [a, b]));
  const shown = files.filter(({ path }) => wanted.has(path));
  return Object.fromEntries(shown.map(({ path, text }) => [path, text]));
}

/** JSON in an element; without any `<`, nothing in it can end that element. */
function makeData(value) {
  const json = JSON.stringify(value).replaceAll('<', '\\u003c');
  return `<script type="application/json" id="data">${json}</script>`;
}

function makeList(pairs, allCount) {
  if (pairs.length === 0) return '<p class="card">No two files are so much alike.</p>';
  const rest = allCount - pairs.length;
  const more = rest > 0 ? `<p class="faint">… and ${rest} more: see --limit</p>` : '';
  return `<ol class="card pairs">\n${pairs.map(makeItem).join('\n')}\n</ol>${more}`;
}

function makeItem({ rank, a, b, similarity, containment, matches }) {
  const meter = `<span class="meter"><i style="width:${(similarity * 100).toFixed(1)}%"></i></span>`;
  return (
    `<li><a href="#pair-${rank}"><span class="faint rank">${rank}</span>` +
    `<strong>${formatShare(similarity)}</strong>${meter}` +
    `<span class="files"><span>${escapePath(a)}</span><span>${escapePath(b)}</span></span>` +
    `<span class="faint detail">${count(matches.length, 'match', 'es')},<br>` +
    `${formatShare(containment)} of the smaller</span></a></li>`
  );
}

function makeNotes({ problems, files }) {
  const left = problems.map(({ path, reason }) => `${path} ${reason}`);
  const noted = files.flatMap(({ path, note }) => (note === undefined ? [] : `${path} ${note}`));
  return makeNote('Left out', left) + makeNote('Compared, but', noted);
}

function makeNote(title, lines) {
  if (lines.length === 0) return '';
  const items = lines.map((line) => `<li>${escapeText(line)}</li>`).join('');
  return `<section class="card notes"><h2>${title}</h2><ul>${items}</ul></section>`;
}

/** A path that breaks after a slash, where it has to. */
function escapePath(path) {
  return escapeText(path).replaceAll('/', '/<wbr>');
}

function escapeText(text) {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
