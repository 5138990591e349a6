// Access to the dashboard, and its events. Not here: the page (dashboard-page.test.ts).

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../faults/child.js';
import { waitFor } from '../support/index.js';
import { end, startDashboard } from './dashboard-process.js';
import { ownRuntime } from './runtime.js';

const app = new URL('./apps/busy.js', import.meta.url);
const command = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** A request of any client, also one that no browser would send. */
async function ask(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, headers, method, agent: false });
    asked.on('error', reject);
    asked.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (more: string) => {
        text += more;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, text }),
      );
    });
    asked.end();
  });
}

/** Reads events until the test ends. */
async function listen(
  t: TestContext,
  url: string,
  token: string,
): Promise<{ readonly all: (name: string) => readonly unknown[] }> {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const response = await fetch(url, {
    headers: { Authorization: `Bearer ${token}` },
    signal: stop.signal,
  });
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  let text = '';
  const { body } = response;
  assert.ok(body !== null);
  const reading = (async () => {
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) text += chunk;
  })();
  reading.catch(() => {}); // aborted
  return {
    all: (name) =>
      text
        .split('\n\n')
        .slice(0, -1)
        .filter((event) => event.startsWith(`event: ${name}\n`))
        .map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6))),
  };
}

test('the printed address lets in, and from then on the cookie, at its path', async (t) => {
  ownRuntime(t);
  const { port, token, lines, child } = await startDashboard(t, '--port', '0');
  assert.equal(lines.length, 1);
  const entered = await ask(port, `/?token=${token}`);
  assert.equal(entered.status, 303);
  const place = String(entered.headers['location']);
  assert.match(place, /^\/[\w-]{43}\/$/);
  const [cookie = '', path, age, ...flags] = String(entered.headers['set-cookie']).split('; ');
  assert.equal(path, `Path=${place}`);
  assert.match(age ?? '', /^Max-Age=\d+$/);
  assert.deepEqual(flags, ['HttpOnly', 'SameSite=Lax']);
  const page = await ask(port, place, { Cookie: `other=1; ${cookie}` });
  assert.equal(page.status, 200);
  assert.match(page.text, /<div id="app">/);
  assert.ok(!page.text.includes(token));
  for (const name of ['dashboard.js', 'dashboard.css']) {
    assert.ok(page.text.includes(`"${name}"`));
    assert.equal((await ask(port, place + name, { Cookie: cookie })).status, 200);
  }
  child.kill('SIGTERM');
});

test('the cookie gives access neither to the token nor to another dashboard', async (t) => {
  ownRuntime(t);
  const [first, second] = [
    await startDashboard(t, '--port', '0'),
    await startDashboard(t, '--port', '0'),
  ];
  const { headers } = await ask(first.port, `/?token=${first.token}`);
  const place = String(headers['location']);
  const [, value = ''] = /^[^=]+=([^;]+)/.exec(String(headers['set-cookie'])) ?? [];
  assert.ok(value.length > 40 && !`${value} ${place}`.includes(first.token));
  for (const refused of [
    await ask(first.port, `/?token=${value}`),
    await ask(first.port, '/', { Authorization: `Bearer ${value}` }),
    await ask(first.port, place, { Cookie: `manycore-${first.port}=${first.token}` }),
    await ask(second.port, place, { Cookie: `manycore-${second.port}=${value}` }),
  ]) {
    assert.equal(refused.status, 401);
  }
});

test('a request without the token, or with a wrong one, gets one sentence', async (t) => {
  ownRuntime(t);
  const { port, token } = await startDashboard(t, '--port', '0');
  const wrong = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`;
  for (const answer of [
    await ask(port, '/'),
    await ask(port, '/events'),
    await ask(port, '/dashboard.js'),
    await ask(port, `/?token=${wrong}`),
    await ask(port, '/?token='),
    await ask(port, '/', { Cookie: `manycore-${port}=${wrong}` }),
    await ask(port, '/', { Authorization: `Bearer ${wrong}` }),
    await ask(port, `/?token=${wrong}`, { Authorization: `Bearer ${token}` }),
  ]) {
    assert.equal(answer.status, 401);
    assert.equal(
      answer.text,
      'This dashboard needs its token: open the whole address that manycore dashboard has printed.\n',
    );
  }
});

test('an invalid path is refused in a sentence, and the dashboard goes on', async (t) => {
  ownRuntime(t);
  const { port, token } = await startDashboard(t, '--port', '0');
  for (const path of ['//', '///', 'http://[', 'http://', '//evil.example/', '*', '/#']) {
    const answer = await ask(port, path);
    assert.equal(answer.status, 400, path);
    assert.equal(answer.text, 'This is no path of this dashboard: the page is at /.\n');
  }
  for (const path of ['/%', '/?%&token', '/events?pid=%00', '/[']) {
    assert.equal((await ask(port, path)).status, 401, path);
  }
  assert.equal((await ask(port, '/', { Authorization: `Bearer ${token}` })).status, 200);
});

test('a foreign name that resolves here is refused before the token is checked', async (t) => {
  ownRuntime(t);
  const { port, token } = await startDashboard(t, '--port', '0');
  const authorized = { Authorization: `Bearer ${token}` };
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    hostname(),
  ]) {
    const answer = await ask(port, '/', { ...authorized, Host: host });
    assert.equal(answer.status, 403, host);
    assert.match(answer.text, /^This dashboard answers to its address and to localhost/);
  }
  for (const host of ['127.0.0.1', `localhost:${port}`, `[::1]:${port}`]) {
    assert.equal((await ask(port, '/', { ...authorized, Host: host })).status, 200, host);
  }
});

test('it runs no script but its own, is in no frame, and changes nothing', async (t) => {
  ownRuntime(t);
  const { port, token } = await startDashboard(t, '--port', '0');
  const authorized = { Authorization: `Bearer ${token}` };
  const { headers } = await ask(port, '/', authorized);
  const policy = String(headers['content-security-policy']);
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self';/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.ok(!policy.includes('unsafe'));
  assert.equal((await ask(port, '/', authorized, 'POST')).status, 405);
  assert.equal((await ask(port, '/../package.json', authorized)).status, 404);
});

test('the token is readable by its user alone, and stays the same', async (t) => {
  const runtime = ownRuntime(t);
  const first = await startDashboard(t, '--port', '0');
  const file = join(runtime, 'dashboard.token');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(readFileSync(file, 'utf8'), first.token);
  assert.equal(await end(first), 0);
  const second = await startDashboard(t, '--port', '0');
  assert.equal(second.token, first.token);
  assert.equal(await end(second), 0);
  writeFileSync(file, 'half of a tok');
  const third = await startDashboard(t, '--port', '0');
  assert.notEqual(third.token, first.token);
  assert.equal(third.token.length, 43);
  assert.deepEqual(readdirSync(runtime), ['dashboard.token']);
});

test('dashboards that start at the same moment have the same token', async (t) => {
  const runtime = ownRuntime(t);
  const all = await Promise.all([1, 2, 3, 4].map(() => startDashboard(t, '--port', '0')));
  const kept = readFileSync(join(runtime, 'dashboard.token'), 'utf8');
  assert.deepEqual(
    all.map(({ token }) => token),
    all.map(() => kept),
  );
  assert.deepEqual(readdirSync(runtime), ['dashboard.token']);
});

test('a token that cannot be kept is one sentence', async (t) => {
  const runtime = ownRuntime(t);
  // The limit lets no file grow, as on a full disk.
  const line = `ulimit -f 0; exec '${process.execPath}' '${command}' dashboard --port 0`;
  const full = await runCommand(t, ['/bin/sh', '-c', line]);
  assert.equal(full.status, 2);
  const expected =
    /^manycore: the dashboard cannot keep its token in \S+dashboard\.token: .*: make room there, or set XDG_RUNTIME_DIR \(DASHBOARD_START_FAILED\)$/m;
  assert.match(full.stderr, expected);
  assert.deepEqual(readdirSync(runtime), []);
  mkdirSync(join(runtime, 'dashboard.token'));
  const odd = await runCommand(t, [process.execPath, command, 'dashboard', '--port', '0']);
  assert.match(odd.stderr, expected);
});

test('a taken default port is replaced by another, a requested one is an error', async (t) => {
  ownRuntime(t);
  const [first, second] = [await startDashboard(t), await startDashboard(t)];
  assert.notEqual(first.port, second.port);
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  const { port }: { port?: number } = Object(await waitFor(() => taken.address()));
  const flags = ['dashboard', '--port', String(port)];
  const { status, stderr } = await runCommand(t, [process.execPath, command, ...flags]);
  assert.equal(status, 2);
  assert.match(
    stderr,
    /^manycore: the dashboard cannot listen: .*EADDRINUSE.*: give another --port, or none \(DASHBOARD_START_FAILED\)$/m,
  );
});

test('on a public address it answers to the name of this machine, and warns about the access of others', async (t) => {
  ownRuntime(t);
  const running = await startDashboard(t, '--port', '0', '--host', '0.0.0.0');
  const lines = await waitFor(
    () => /others in the network/.test(running.lines.join('\n')) && running.lines,
  );
  assert.equal(new URL(running.address).hostname, 'localhost');
  assert.ok(
    lines[1]?.startsWith(`from other machines http://${hostname()}:${running.port}/?token=`),
  );
  const own = { Host: `${hostname()}:${running.port}` };
  assert.equal((await ask(running.port, `/?token=${running.token}`, own)).status, 303);
});

test('a page receives all programs repeatedly, and the tasks of the opened one', async (t) => {
  ownRuntime(t);
  const { origin, token } = await startDashboard(t, '--port', '0');
  const child = fork(app);
  t.after(() => child.kill('SIGKILL'));
  const { pid = 0 } = child;
  const list = await listen(t, `${origin}/events`, token);
  const one = await listen(t, `${origin}/events?pid=${pid}`, token);
  await waitFor(() => one.all('tasks').length > 2 && one.all('view').length > 2);
  const { pid: from, thread, slice } = Object(one.all('tasks').at(-1));
  assert.equal(from, pid);
  assert.equal(thread, 0);
  assert.ok(Array.isArray(slice.workers));
  await waitFor(() => Object(one.all('view').at(-1)).opened?.pid === pid);
  const last = await waitFor(() => {
    const view = Object(list.all('view').at(-1));
    return view.programs?.[0]?.summary.tasksPerSecond > 0 && view;
  });
  assert.equal(last.programs[0].pid, pid);
  assert.equal(last.opened, undefined);
  assert.deepEqual(list.all('tasks'), []);
  child.kill('SIGKILL');
  await waitFor(() => {
    const view = Object(one.all('view').at(-1));
    return view.programs.length === 0 && view.opened === undefined;
  });
});

test('a page shows why programs cannot be found, and recovers', async (t) => {
  const runtime = ownRuntime(t);
  const { origin, token } = await startDashboard(t, '--port', '0');
  const events = await listen(t, `${origin}/events`, token);
  await waitFor(() => events.all('view').length > 0);
  chmodSync(runtime, 0o755);
  const problem = await waitFor(() => events.all('problem').at(-1));
  assert.match(String(problem), /is not a private folder of this user/);
  const seen = events.all('view').length;
  chmodSync(runtime, 0o700);
  await waitFor(() => events.all('view').length > seen);
});

test('a program that is opened while nothing can be found breaks nothing, and is followed later', async (t) => {
  const runtime = ownRuntime(t);
  const child = fork(app);
  t.after(() => child.kill('SIGKILL'));
  const { origin, token } = await startDashboard(t, '--port', '0');
  const list = await listen(t, `${origin}/events`, token);
  await waitFor(() => Object(list.all('view').at(-1)).programs?.[0]?.pid === child.pid);
  chmodSync(runtime, 0o755);
  const one = await listen(t, `${origin}/events?pid=${child.pid}`, token);
  await waitFor(() => list.all('problem').length > 0 && one.all('problem').length > 0);
  chmodSync(runtime, 0o700);
  await waitFor(() => one.all('tasks').length > 0);
});

for (const { flags, message } of [
  {
    flags: ['--port', '99999'],
    message: /port is 99999: it must be an integer.*\(OPTION_INVALID\)/,
  },
  {
    flags: ['--host', 'nohost.invalid'],
    message: /give another --host.*\(DASHBOARD_START_FAILED\)/,
  },
  { flags: ['--host', '192.0.2.1'], message: /give another --host.*\(DASHBOARD_START_FAILED\)/ },
]) {
  test(`${flags.join(' ')} is one sentence that names the flag`, async (t) => {
    ownRuntime(t);
    const words = [process.execPath, command, 'dashboard', ...flags];
    const { status, stderr } = await runCommand(t, words);
    assert.equal(status, 2);
    assert.match(stderr, /^manycore: [^\n]*\n$/);
    assert.match(stderr, message);
  });
}
