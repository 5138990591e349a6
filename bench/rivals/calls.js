// Matches replies to promises: the code that every user of worker_threads or fork writes by hand.

export function makeCalls() {
  const waiting = new Map();
  let last = 0;
  return {
    begin(send) {
      const call = ++last;
      const promise = new Promise((resolve, reject) => {
        waiting.set(call, { resolve, reject });
      });
      send(call);
      return promise;
    },
    settle([call, result]) {
      const { resolve } = waiting.get(call);
      waiting.delete(call);
      resolve(result);
    },
    fail(error) {
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    },
  };
}
