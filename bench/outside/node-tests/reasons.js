// Reasons of Node's tests that end otherwise in a loop. docs/design/serve.md has them as a table. A failing test
// that is not here is a fault.

const because = (why, ...tests) => tests.map((test) => ({ test, outcome: 'otherwise', why }));

export const reasons = [
  ...because(
    'a served program does not end by itself when nothing keeps its loop alive',
    'test-net-connect-paused-connection.js',
    'test-net-server-unref.js',
    'test-net-socket-timeout-unref.js',
  ),
  ...because(
    'it forks with cluster: a loop is a worker of cluster, and has no workers of its own',
    'test-net-listen-handle-in-cluster-1.js',
    'test-net-socket-constructor.js',
  ),
  ...because(
    'errors of listen() have the syscall bind, as in every worker of cluster',
    'test-net-better-error-messages-listen.js',
    'test-net-server-listen-path.js',
  ),
  ...because(
    "the undocumented _connectionKey is that of cluster's workers: 4:null:0",
    'test-net-listen-invalid-port.js',
  ),
  ...because(
    'a socket of the event connect has one listener for close, by which the loop counts it',
    'test-http-connect.js',
  ),
];
