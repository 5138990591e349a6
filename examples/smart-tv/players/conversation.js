// Line protocol of players: a command goes out, and answers come back as lines in the order of the commands.
// mpv and the stand-in use it. They differ in the form of a command and in the lines that are answers: a
// player may print other lines too. Also the helpers of all players.
import { createInterface } from 'node:readline';

// Limit for an answer of a player; then its press fails.
const answerWithinMs = 10_000;

/**
 * Opens the protocol. `child` is the player's process, `input` and `output` are its streams, `isAnswer(line)`
 * selects the answers. Returns `{ say(text), died }`: `say` settles with the answer to `text`.
 */
export function converse(child, input, output, isAnswer) {
  const waiting = [];
  const died = whenEnded(child);
  void died.then((reason) => {
    for (const { reject } of waiting.splice(0)) reject(reason);
  });
  input.on('error', () => {}); // the player has ended: `died` resolves for those that wait

  createInterface({ input: output }).on('line', (line) => {
    if (isAnswer(line)) waiting.shift()?.resolve(line);
  });

  function say(text) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`the player did not answer for ${answerWithinMs / 1000} s`)),
        answerWithinMs,
      );
      const settle = (how) => (value) => {
        clearTimeout(timer);
        how(value);
      };
      // A question that timed out keeps its place, so that a late answer does not go to the next.
      waiting.push({ resolve: settle(resolve), reject: settle(reject) });
      input.write(text);
    });
  }
  return { say, died };
}

/** Resolves with an error that has the reason why `child` has ended or did not start. */
export function whenEnded(child) {
  return new Promise((resolve) => {
    child.once('error', (error) =>
      resolve(new Error(`the player did not start: ${error.message}`)),
    );
    child.once('exit', (code, signal) =>
      resolve(new Error(`the player ended (${signal ?? code})`)),
    );
  });
}

/** True: the machine has a screen; without one, players run without output. */
export function hasScreen() {
  return process.env.DISPLAY !== undefined || process.env.WAYLAND_DISPLAY !== undefined;
}
