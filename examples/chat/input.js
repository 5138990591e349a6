// Input of browsers: `{ enter: ROOM, name }` or `{ say: TEXT }`, as JSON. Anything else throws an error whose
// one sentence describes the right input.

const maxNameLength = 24;
const maxTextLength = 1000;

/** Error whose message is shown to the person who typed the input. */
export class InputError extends Error {
  code = 'CHAT_INPUT';
}

/** Returns `{ room, name }` with the room itself, or `{ say }`. Throws `InputError`. */
export function readInput(json, rooms) {
  const { enter, name, say } = Object(parse(json));
  if (say !== undefined) return { say: line('a message', say, maxTextLength) };
  if (enter === undefined) throw new InputError('send {"enter", "name"} or {"say"}');
  const room = rooms.get(enter);
  if (room === undefined) {
    const known = [...rooms.keys()].join(', ');
    throw new InputError(`there is no room ${JSON.stringify(enter)}: enter one of ${known}`);
  }
  return { room, name: line('a name', name, maxNameLength) };
}

function parse(json) {
  try {
    return JSON.parse(json);
  } catch {
    throw new InputError('this is no JSON: send {"enter", "name"} or {"say"}');
  }
}

function line(what, value, maxLength) {
  const text = typeof value === 'string' ? value.replaceAll(/\s+/g, ' ').trim() : '';
  if (text === '') throw new InputError(`${what} is missing: write one`);
  if (text.length <= maxLength) return text;
  throw new InputError(
    `${what} of ${text.length} characters is too long: ${maxLength} is the limit`,
  );
}
