// Prints one line of JSON for each test of a file under node --test, without those that only group others.
export default async function* lines(source) {
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.details?.type === 'suite' || (data.name.endsWith('.js') && data.nesting === 0))
      continue;
    const error = data.details?.error;
    yield `RESULT ${JSON.stringify({
      name: data.name,
      line: data.line,
      isOk: type === 'test:pass',
      isSkipped: data.skip !== undefined,
      error: error && String(error.cause?.message ?? error.cause ?? error.message),
    })}\n`;
  }
}
