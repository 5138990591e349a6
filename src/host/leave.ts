// The end of a host. What it has printed is written first.

export function leave(isProcess: boolean): void {
  const streams = isProcess ? [process.stdout, process.stderr] : [];
  let unwritten = 1;
  const oneLess = (): void => {
    unwritten -= 1;
    if (unwritten === 0) process.exit(0);
  };
  for (const stream of streams) {
    if (stream.writableLength === 0) continue;
    unwritten += 1;
    stream.write('', oneLess);
  }
  oneLess();
}
