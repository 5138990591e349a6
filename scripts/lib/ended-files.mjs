// A reporter for node's test runner: the test files whose process ended otherwise than by exit code 0, with
// the exit code or signal and the last lines of their stderr. The other reporters print "test failed" alone.

/** Characters of stderr that are kept of each file. */
const keptStderr = 2000;

export default async function* endedFiles(events) {
  const stderr = new Map();
  const ended = [];
  for await (const { type, data } of events) {
    if (type === 'test:stderr') {
      stderr.set(data.file, `${stderr.get(data.file) ?? ''}${data.message}`.slice(-keptStderr));
    } else if (type === 'test:fail') {
      const { exitCode, signal } = data.details.error;
      if (exitCode !== undefined || signal) ended.push({ file: data.name, exitCode, signal });
    }
  }
  for (const { file, exitCode, signal } of ended) {
    const cause = signal ? `signal ${signal}` : `exit code ${exitCode}`;
    yield `\n${file} ended with ${cause}; its last lines on stderr:\n${stderr.get(file) ?? ''}\n`;
  }
}
