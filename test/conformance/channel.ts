// The contract of `Channel` (src/channels/types.ts) as tests, for any kind. The number in front of a
// title is the promise that it holds.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { random, waitFor, withDeadline } from '../support/index.js';
import { type Opened, open, type Subject } from './open.js';
import { answer, ask, titleWhenOut, writeBytes } from './peer.js';

const deadlineMs = 30_000;

/** Whether a process has ended, asked without leaving this turn of the event loop. */
function hasEnded(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
}

/** True: a process has this title; read in the same way. */
function hasTitle(pid: number, title: string): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(title);
}

async function counted({ frames }: Opened): Promise<{ task: number; target: number }> {
  return waitFor(
    () => frames.find((frame) => frame.kind === answer.counted),
    deadlineMs,
    'counted',
  );
}

/** Runs every test on this kind of channel. */
export function testChannel(subject: Subject): void {
  const isolated = subject.isIsolated === true ? 'n isolated' : '';
  const name = `${subject.kind} to a${isolated} ${subject.worker}`;
  const check = (title: string, body: (t: TestContext) => Promise<void>): void => {
    test(`${name}: ${title}`, { timeout: 60_000 }, body);
  };

  check('1. ten thousand frames of mixed sizes arrive whole, once, in order', async (t) => {
    const opened = open(t, subject);
    const chance = random(t);
    const bytes = chance.bytes(200_000);
    const sent: Buffer[] = [];
    for (let index = 0; index < 10_000; index += 1) {
      const size = chance.integer(0, index % 500 === 0 ? 200_000 : 300);
      sent.push(bytes.subarray(index % 7, (index % 7) + size));
      await opened.send(ask.echo, index, -index, sent[index]);
    }
    await opened.frameCount(sent.length);
    for (const [index, frame] of opened.frames.entries()) {
      assert.equal(frame.kind, answer.echoed);
      assert.equal(frame.task, index);
      assert.equal(frame.target, index === 0 ? 0 : -index);
      assert.ok(sent[index]?.equals(frame.body), `the body of frame ${index}`);
    }
  });

  check('11. the bytes of frames are counted, both ways', async (t) => {
    const opened = open(t, subject);
    const bytes = Buffer.alloc(3_000_000);
    await opened.send(ask.echo, 0, 0, bytes); // larger than what some kinds carry at a time
    await opened.frameCount(1);
    const { channel } = opened;
    const before = [channel.sentBytes, channel.receivedBytes] as const;
    for (const count of before) assert.ok(count >= 3_000_000 && count < 3_001_000, `${count}`);
    let bodies = 0;
    for (let index = 0; index < 3000; index += 1) {
      const body = bytes.subarray(0, index % 5000);
      await opened.send(ask.echo, index, 0, body);
      bodies += body.byteLength;
    }
    await opened.frameCount(3001);
    const [sent, received] = [channel.sentBytes - before[0], channel.receivedBytes - before[1]];
    assert.equal(sent, received);
    assert.ok(sent >= bodies && sent < bodies + 3000 * 32, `${sent} for ${bodies}`);
  });

  check('1. the extremes of int32 arrive in the header', async (t) => {
    const opened = open(t, subject);
    await opened.send(ask.echo, 0x7fff_ffff, -0x8000_0000);
    await opened.frameCount(1);
    assert.equal(opened.frames[0]?.task, 0x7fff_ffff);
    assert.equal(opened.frames[0]?.target, -0x8000_0000);
  });

  check('1. a body writer that refuses or throws leaves nothing in the stream', async (t) => {
    const opened = open(t, subject);
    const refuse = (): boolean => false;
    const half: typeof writeBytes = (writer, value) => {
      writer.raw(value);
      return false;
    };
    const fail = (): boolean => {
      throw new Error('in the body');
    };
    assert.equal(opened.channel.trySend(ask.echo, 1, 1, refuse, 0), 'refused');
    assert.equal(opened.channel.trySend(ask.echo, 2, 2, half, Buffer.alloc(100)), 'refused');
    assert.throws(() => opened.channel.trySend(ask.echo, 3, 3, fail, 0), /in the body/);
    await opened.send(ask.echo, 4, 4, Buffer.from('whole'));
    await opened.frameCount(1);
    assert.equal(opened.frames[0]?.task, 4);
    assert.equal(opened.frames[0]?.body.toString(), 'whole');
  });

  check('2. what either side sent before close() arrives before onClose', async (t) => {
    const opened = open(t, subject);
    for (let index = 0; index < 1000; index += 1) await opened.send(ask.plain);
    await opened.send(ask.flood, 1000, 100);
    opened.channel.close();
    assert.equal(await opened.closed(), 'orderly');
    assert.equal(opened.frames.length, 1001);
    assert.equal(opened.frames[1000]?.kind, answer.counted);
    assert.equal(opened.frames[1000]?.task, 1000);
  });

  check('3. a peer that does not read makes trySend say full, and onDrain follows', async (t) => {
    const opened = open(t, subject);
    const body = Buffer.alloc(10_000);
    let drains = 0;
    opened.channel.handle({
      onDrain: () => {
        drains += 1;
      },
    });
    assert.equal(opened.channel.trySend(ask.stall, 0, 0, writeBytes, Buffer.alloc(0)), 'sent');
    let sentFrames = 0;
    const fill = (): string => {
      for (; sentFrames < 100_000; sentFrames += 1) {
        const outcome = opened.channel.trySend(ask.plain, 0, 0, writeBytes, body);
        if (outcome !== 'sent') return outcome;
      }
      return 'never full';
    };
    assert.equal(fill(), 'full');
    opened.openGate();
    await waitFor(() => drains > 0, deadlineMs, 'onDrain');
    assert.equal(drains, 1);
    assert.equal(opened.channel.trySend(ask.count, 0, 0, writeBytes, Buffer.alloc(0)), 'sent');
    assert.equal((await counted(opened)).task, sentFrames);
  });

  check('4. a frame of 64 MiB passes between its neighbours, both ways', async (t) => {
    const opened = open(t, subject);
    const large = Buffer.alloc(64 * 1024 * 1024);
    for (let offset = 0; offset < large.byteLength; offset += 4096) {
      large.writeUInt32LE(offset, offset);
    }
    await opened.send(ask.echo, 1, 0, Buffer.from('before'));
    await opened.send(ask.echo, 2, 0, large);
    await opened.send(ask.echo, 3, 0, Buffer.from('after'));
    await opened.frameCount(3);
    assert.deepEqual(
      opened.frames.map((frame) => frame.task),
      [1, 2, 3],
    );
    assert.ok(opened.frames[1]?.body.equals(large));
  });

  check('5. after the death of the peer onClose is called once, behind its frames', async (t) => {
    const opened = open(t, subject);
    await opened.send(ask.flood, 500, 100);
    await opened.send(ask.echo, 77);
    await opened.frameCount(501);
    opened.kill();
    assert.equal(await opened.closed(), 'CHANNEL_CLOSED');
    await withDeadline(opened.exited, deadlineMs, 'exit');
    assert.equal(opened.frames.length, 501);
    assert.equal(opened.channel.trySend(ask.echo, 0, 0, writeBytes, Buffer.alloc(1)), 'closed');
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(opened.closes, ['CHANNEL_CLOSED']);
  });

  if (subject.worker === 'process') {
    check('5. frames of a dead peer arrive although sending to it already failed', async (t) => {
      const opened = open(t, subject);
      await opened.send(ask.echo, 1);
      await opened.frameCount(1);
      await opened.send(ask.flood, 300, 100);
      await opened.send(ask.nameWhenOut);
      // Out of this process, then not one turn of our event loop until the peer is dead.
      await new Promise((resolve) => setImmediate(resolve));
      const word = new Int32Array(new SharedArrayBuffer(4));
      const pid = opened.pid ?? 0;
      const end = performance.now() + deadlineMs;
      while (!hasTitle(pid, titleWhenOut) && performance.now() < end) Atomics.wait(word, 0, 0, 1);
      opened.kill();
      while (!hasEnded(pid) && performance.now() < end) Atomics.wait(word, 0, 0, 1);
      for (let index = 0; index < 100; index += 1) {
        opened.channel.trySend(ask.plain, 0, 0, writeBytes, Buffer.alloc(10_000));
      }
      assert.equal(await opened.closed(), 'CHANNEL_CLOSED');
      assert.equal(opened.frames.length, 301);
    });
  }

  check('6. close() and destroy() may be called again and again', async (t) => {
    const opened = open(t, subject);
    opened.channel.close();
    opened.channel.close();
    assert.equal(opened.channel.trySend(ask.echo, 0, 0, writeBytes, Buffer.alloc(0)), 'closed');
    assert.equal(await opened.closed(), 'orderly');
    opened.channel.close();
    opened.channel.destroy();
    opened.channel.destroy();
    opened.channel.close();
    opened.channel.ref();
    opened.channel.unref();
    assert.equal(opened.channel.trySend(ask.echo, 0, 0, writeBytes, Buffer.alloc(0)), 'closed');
    assert.deepEqual(opened.closes, ['orderly']);
  });

  check('6. after destroy() no listener is called', async (t) => {
    const opened = open(t, subject);
    await opened.send(ask.flood, 5000, 100);
    await opened.frameCount(1);
    opened.channel.destroy();
    const framesBefore = opened.frames.length;
    opened.kill();
    await withDeadline(opened.exited, deadlineMs, 'exit');
    for (let turn = 0; turn < 5; turn += 1) await new Promise((done) => setImmediate(done));
    assert.equal(opened.frames.length, framesBefore);
    assert.deepEqual(opened.closes, []);
  });

  check('6. destroy() inside a listener is the last that is heard', async (t) => {
    const opened = open(t, subject);
    let calls = 0;
    opened.channel.handle({
      onFrame: () => {
        calls += 1;
        opened.channel.destroy();
      },
    });
    await opened.send(ask.flood, 5000, 10);
    await waitFor(() => calls > 0, deadlineMs, 'a frame');
    opened.kill();
    await withDeadline(opened.exited, deadlineMs, 'exit');
    assert.equal(calls, 1);
    assert.deepEqual(opened.closes, []);
  });

  check('6. the peer that closed first still receives', async (t) => {
    const opened = open(t, subject);
    await opened.send(ask.close);
    assert.equal(await opened.closed(), 'orderly');
    assert.equal(
      opened.channel.trySend(ask.unref, 0, 0, writeBytes, Buffer.alloc(0)),
      'sent',
      'an end that has not closed may go on sending',
    );
    opened.channel.close();
    assert.equal(await withDeadline(opened.exited, deadlineMs, 'the peer took the frame'), 0);
  });

  check('7. bytes that are no frame end the channel, not the process', async (t) => {
    const opened = open(t, subject);
    await opened.send(ask.echo, 1);
    await opened.send(ask.corrupt);
    const code = subject.kind === 'shm' ? 'SEGMENT_CORRUPT' : 'CHANNEL_FRAME_CORRUPT';
    assert.equal(await opened.closed(), code);
    assert.equal(opened.channel.trySend(ask.echo, 0, 0, writeBytes, Buffer.alloc(0)), 'closed');
  });

  check('8. no listener runs inside trySend', async (t) => {
    const opened = open(t, subject);
    let isSending = false;
    let calledInside = 0;
    let calls = 0;
    opened.channel.handle({
      onFrame: () => {
        calls += 1;
        if (isSending) calledInside += 1;
      },
      onDrain: () => {
        if (isSending) calledInside += 1;
      },
    });
    const body = Buffer.alloc(1000);
    let sentFrames = 0;
    for (let turn = 0; turn < 50; turn += 1) {
      isSending = true;
      for (let index = 0; index < 200; index += 1) {
        if (opened.channel.trySend(ask.echo, 0, 0, writeBytes, body) === 'sent') sentFrames += 1;
      }
      isSending = false;
      await new Promise((done) => setImmediate(done));
    }
    await waitFor(() => calls === sentFrames, deadlineMs, 'all echoes');
    assert.equal(calledInside, 0);
  });

  check('8. a body writer that sends is told full, and nothing is mixed up', async (t) => {
    const opened = open(t, subject);
    let inner: string | undefined;
    let drains = 0;
    opened.channel.handle({
      onDrain: () => {
        drains += 1;
      },
    });
    const nested: typeof writeBytes = (writer, value) => {
      inner = opened.channel.trySend(ask.echo, 2, 0, writeBytes, value);
      return writeBytes(writer, value);
    };
    const outcome = opened.channel.trySend(ask.echo, 1, 0, nested, Buffer.from('outer'));
    assert.equal(outcome, 'sent');
    assert.equal(inner, 'full');
    await waitFor(() => drains === 1, deadlineMs, 'onDrain');
    await opened.frameCount(1);
    assert.equal(opened.frames[0]?.body.toString(), 'outer');
  });

  check('12. handle() keeps the handlers that it does not get', async (t) => {
    const opened = open(t, subject);
    let kinds = 0;
    opened.channel.handle({
      onFrame: () => {
        kinds += 1;
      },
    });
    await opened.send(ask.echo, 1);
    await waitFor(() => kinds === 1, deadlineMs, 'the echo');
    assert.equal(opened.frames.length, 0, 'the handler before is replaced');
    await opened.send(ask.close);
    assert.equal(await opened.closed(), 'orderly', 'the others are kept');
  });

  check(
    '9. a listener that throws loses and repeats nothing, and its error surfaces',
    async (t) => {
      const opened = open(t, subject);
      for (let index = 0; index < 20; index += 1) {
        await opened.send(ask.plain);
        await opened.send(ask.fail);
      }
      await opened.send(ask.plain);
      await opened.send(ask.count);
      await counted(opened);
      opened.frames.length = 0;
      await opened.send(ask.count);
      assert.deepEqual(
        { ...(await counted(opened)), kind: 0, body: 0 },
        {
          kind: 0,
          body: 0,
          task: 21,
          target: 20,
        },
      );
    },
  );

  check('10. a channel that is not ref() does not keep its thread alive', async (t) => {
    const opened = open(t, subject, true);
    assert.equal(await withDeadline(opened.exited, deadlineMs, 'exit'), 0);
  });

  check('10. between ref() and unref() it does', async (t) => {
    const opened = open(t, subject);
    await opened.send(ask.echo, 1);
    await opened.frameCount(1);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((done) => setImmediate(done));
    await opened.send(ask.echo, 2);
    await opened.frameCount(2);
    await opened.send(ask.unref);
    assert.equal(await withDeadline(opened.exited, deadlineMs, 'exit'), 0);
  });

  check('13. poll() delivers frames in its call, in order, between others', async (t) => {
    const opened = open(t, subject);
    const { channel, frames } = opened;
    if (channel.poll === undefined) return t.skip('this kind cannot');
    await opened.send(ask.echo, 1);
    await opened.frameCount(1);
    const pause = new Int32Array(new SharedArrayBuffer(4));
    const endMs = performance.now() + deadlineMs;
    for (let task = 2; task <= 5; task += 1) {
      channel.trySend(ask.echo, task, 0, writeBytes, Buffer.alloc(1000));
      while (task % 2 === 0 && frames.length < task && performance.now() < endMs) {
        channel.poll();
        Atomics.wait(pause, 0, 0, 1);
      }
      if (task % 2 === 0) assert.equal(frames.length, task, 'in this turn');
    }
    await opened.frameCount(5);
    assert.deepEqual(
      frames.map((frame) => frame.task),
      [1, 2, 3, 4, 5],
    );
  });
}
