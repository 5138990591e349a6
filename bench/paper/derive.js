// Six jobs that are begun together, and when each is done.
export const jobs = 6;
export const turns = 100_000;

/** In a worker. */
export async function deriveThere(count) {
  const { pbkdf2Sync } = await import('node:crypto');
  pbkdf2Sync('secret', 'salt', count, 64, 'sha512');
}

/** In ms from the beginning of all, in the order in which they end. */
export async function timesOf(derive) {
  const began = performance.now();
  const doneMs = [];
  const job = async () => {
    await derive();
    doneMs.push(performance.now() - began);
  };
  await Promise.all(Array.from({ length: jobs }, job));
  return doneMs;
}
