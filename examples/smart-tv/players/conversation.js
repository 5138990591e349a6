// Talking to a player in lines: a command goes out, and the lines that are answers come back in the
// order of the commands. mpv and the stand-in talk so; they differ in what a command looks like and in
// which lines are answers (a player may print other things too). Also what all players need.
import { createInterface } from 'node:readline';

// What a player may take to answer before its press fails.
const answerWithinMs = 10_000;

/**
 * `child` is the player's process, `input` and `output` are the streams to talk over, `isAnswer(line)`
 * picks the answers. Gives `{ say(text), died }`: `say` settles with the answer to `text`.
 */
export function converse(child, input, output, isAnswer) {
  const waiting = [];
  const died = whenEnded(child);
  void died.then((reason) => {
    for (const { reject } of waiting.splice(0)) reject(reason);
  });
  input.on('error', () => {}); // a player that is gone: `died` tells those who wait

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

/** Resolves with an error that says why `child` has ended or did not start. */
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

/** Whether the machine has a screen to show something on; players run without output where not. */
export function hasScreen() {
  return process.env.DISPLAY !== undefined || process.env.WAYLAND_DISPLAY !== undefined;
}
