// Lines of the output of served processes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  LineSplitter,
  markedLine,
  type OutputLine,
  readMark,
} from '../../src/serve/output/lines.js';
import { RecentLines } from '../../src/serve/output/recent-lines.js';
import { random } from '../support/index.js';

function linesOf(pieces: readonly Buffer[]): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line));
  for (const piece of pieces) splitter.write(piece);
  splitter.end();
  return lines;
}

test('lines are the same however their bytes arrive', (t) => {
  const chance = random(t);
  const texts = ['', 'a', 'grüße', '\u{1f600}\u{1f600}', 'tab\t', ' '];
  for (let round = 0; round < 300; round += 1) {
    const lines = Array.from({ length: chance.integer(1, 6) }, () =>
      (texts[chance.integer(0, texts.length)] ?? '').repeat(chance.integer(1, 3)),
    );
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const size = chance.integer(1, 8);
      pieces.push(bytes.subarray(at, at + size));
      at += size;
    }
    assert.deepEqual(linesOf(pieces), lines);
  }
});

test('a last line without an end counts, and the end of a Windows line is none of it', () => {
  assert.deepEqual(linesOf([Buffer.from('a\r\nb')]), ['a', 'b']);
});

test('a line without an end never fills the memory', () => {
  const lines = linesOf([
    Buffer.alloc(200_000, 'x'),
    Buffer.alloc(100_000, 'x'),
    Buffer.from('\ny\n'),
  ]);
  assert.ok(lines.every((line) => line.length <= 65_536));
  assert.equal(lines.join('').length, 300_001);
  assert.equal(lines.at(-1), 'y');
});

test('the mark of a loop is read back, and other text is none', () => {
  for (const loop of [0, 7, 255]) {
    assert.deepEqual(readMark(markedLine(loop, 'text').trimEnd()), { loop, text: 'text' });
  }
  for (const text of ['', 'text', '\x1e', '\x1e1', '\x1ex\x1ftext', 'a\x1e1\x1ftext']) {
    assert.deepEqual(readMark(text), { loop: undefined, text });
  }
});

test('recent lines are the last ones, within a limit of memory', () => {
  const recent = new RecentLines();
  const followed: string[] = [];
  const end = recent.follow(({ text }) => followed.push(text));
  const line = (text: string): OutputLine => ({
    ...{ timeMs: 0, name: 'app', process: 0, loop: 0, stream: 'stdout' },
    text,
  });
  for (let at = 0; at < 1200; at += 1) recent.add(line(String(at)));
  end();
  recent.add(line('more'));
  assert.equal(followed.length, 1200);
  assert.deepEqual(
    recent.last(2).map(({ text }) => text),
    ['1199', 'more'],
  );
  assert.equal(recent.last(5000).length, 1000);
  assert.deepEqual(recent.last(0), []);
  for (let at = 0; at < 40; at += 1) recent.add(line('x'.repeat(65_536)));
  assert.ok(recent.last(5000).reduce((sum, { text }) => sum + text.length, 0) <= 1024 * 1024);
});
