// Adds up the counts of the clients, and answers with the rate since the last request.
export function start({ bus }) {
  let answers = 0;
  let sinceMs = performance.now();
  bus.consumer('answers', ({ body }) => {
    answers += body;
  });
  bus.consumer('rate', (message) => {
    const nowMs = performance.now();
    message.reply((answers / (nowMs - sinceMs)) * 1000);
    answers = 0;
    sinceMs = nowMs;
  });
}
