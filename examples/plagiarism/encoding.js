// Decodes a source file. Java files do not name their encoding, so the bytes decide: a byte order mark, else
// UTF-8, and Latin-1 for bytes that are no valid UTF-8. In Latin-1 every byte is some letter. A wrong guess
// changes letters in comments and strings, which are not compared.

/**
 * Returns `{ text }` without a byte order mark, with a `note` when it was not UTF-8. Returns `{ problem }`
 * when the bytes are no text, or there are none.
 */
export function decode(bytes) {
  const read = readMarked(bytes) ?? readUnmarked(bytes);
  if (read.problem !== undefined) return read;
  if (read.text.includes('\0')) return binary('holds zero characters, so it is binary');
  if (read.text.trim() === '') return { problem: { kind: 'empty', reason: 'is empty' } };
  return read;
}

function readMarked(bytes) {
  const mark = bytes.subarray(0, 2).toString('hex');
  if (mark === 'fffe') return { text: bytes.toString('utf16le', 2), note: 'is UTF-16 LE' };
  if (mark !== 'feff') return undefined;
  const swapped = Buffer.from(bytes.subarray(2, bytes.length - (bytes.length % 2))).swap16();
  return { text: swapped.toString('utf16le'), note: 'is UTF-16 BE' };
}

function readUnmarked(bytes) {
  if (bytes.includes(0)) {
    return binary('holds zero bytes: it is binary, or UTF-16 without a byte order mark');
  }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { text: bytes.toString('latin1'), note: 'is not valid UTF-8: read as Latin-1' };
  }
}

function binary(reason) {
  return { problem: { kind: 'binary', reason } };
}
