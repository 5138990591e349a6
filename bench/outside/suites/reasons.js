// Reasons of the expected failures of other pools' tests. `missing`: manycore lacks the feature. `otherwise`:
// it differs by design, or an adapter cannot express it. docs/guide/from-other-pools.md names each `missing`.
// A failing test that is not here is a fault.

const because = (pool, outcome, why, ...tests) =>
  tests.map((test) => ({ pool, outcome, why, test }));

const balancer = 'no load balancer: `key` and `priority` are what a call can say of its worker';
const queue = 'no own queue: `priority` orders that of the pool';
const limits = 'no limit of the young generation: `maxHeapMb` is that of the old one';
const notBegun = 'a task that has not begun when it is cancelled leaves its worker alone';
const parentPort = 'no messages by `parentPort`: a task speaks by `report`';

export const reasons = [
  ...because(
    'piscina',
    'missing',
    balancer,
    /workers has histogram/,
    /workers does not have histogram/,
  ),
  ...because('piscina', 'missing', balancer, /workers are marked as destroyed/),
  ...because('piscina', 'otherwise', notBegun, /workerCreate\/workerDestroy should be emitted/),
  ...because(
    'piscina',
    'otherwise',
    'which of two idle workers gets a task is not fixed; the test compares their order',
    /if Infinity is used/,
  ),
  ...because(
    'piscina',
    'otherwise',
    'tasks of a worker that is still starting have not begun: they are cancelled with those that wait',
    /aborts tasks that are not started yet/,
  ),
  ...because('piscina', 'missing', queue, /custom task queue/),
  ...because('piscina', 'missing', parentPort, /Pool receive message from workers/),
  ...because(
    'piscina',
    'otherwise',
    'a task with a signal may run beside others; when it has to be ended, they run again or are told why',
    /abortable tasks will not share workers/,
  ),
  ...because('tinypool', 'missing', queue, /custom task queue/),
  ...because(
    'tinypool',
    'otherwise',
    'what a worker prints comes before its end is reported, and not always before a result',
    /stdout and stderr are piped/,
  ),
  ...because('tinypool', 'missing', parentPort, /using parentPort/),
  ...because(
    'tinypool',
    'otherwise',
    'flags of the program are flags of its workers, too, here those of Vitest',
    /passing execArgv/,
  ),
  ...because(
    'workerpool',
    'otherwise',
    'a function takes what it captured along, here the Promise of workerpool, which has no `resolve`',
    /should execute a function returning a Promise/,
    /should propagate a rejected Promise/,
  ),
  ...because(
    'workerpool',
    'otherwise',
    'a cancelled task leaves the queue at once and is not counted there until its turn',
    /should cancel a queued task/,
    /run following tasks if a previous queued task/,
  ),
  ...because(
    'workerpool',
    'otherwise',
    'options are checked when the pool is made, and inherited ones are not read',
    /should not allow (unknown|inherited) properties/,
  ),
  ...because(
    'workerpool',
    'otherwise',
    'one thread of a pool cannot be ended from outside',
    /crashed workers/,
  ),
  ...because('workerpool', 'missing', limits, /supports passing options to threads/),
  ...because('workerpool', 'missing', queue, /priority queue behavior/),
  ...because(
    'workerpool',
    'otherwise',
    'a worker that is ready runs short tasks of those that still start; the test wants one in each',
    /worker creation hook/,
  ),
  ...because(
    'workerpool',
    'otherwise',
    notBegun,
    /should invoke timeout for abort handler .* with Cancellation/,
    /should not terminate worker .* dedicated worker with Cancellation/,
  ),
  ...because(
    'workerpool',
    'otherwise',
    'the first task waits for its worker like the others, and the last one comes first',
    /LIFO order/,
  ),
  ...because(
    'workerpool',
    'otherwise',
    'an aborted call is over for its caller at once, and its reports go nowhere',
    /should trigger event in abort handler/,
  ),
  ...because(
    'tinypool',
    'missing',
    'no messages to a running task',
    /can send .*messages/,
    /writing to/,
  ),
  ...because(
    'tinypool',
    'otherwise',
    'the test replaces `terminate` of a worker, which a worker does not have',
    /termination timeout/,
  ),
  ...because(
    'tinypool',
    'otherwise',
    'a worker that is replaced is there until it has left, and a task may wait behind another for a moment',
    /running workers can recycle/,
  ),
];
