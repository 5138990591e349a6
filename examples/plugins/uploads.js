// Sources that users upload: useful ones, and hostile ones.

export const values = { net: 20, tax: 0.25, pixels: [10, 200, 30, 255], currency: 'USD' };

export const uploads = {
  'a price': 'net * (1 + tax)',
  'a price in another currency': 'return Math.round(net * (1 + tax) * await rate(currency))',
  'a filter that inverts': 'pixels.map((value, at) => (at % 4 === 3 ? value : 255 - value))',
  'reads the passwords': 'process.getBuiltinModule("fs").readFileSync("/etc/passwd", "utf8")',
  'reads the environment':
    'Object.keys(process.env).filter((name) => !["HOME", "PATH", "PWD", "TZ"].includes(name))',
  'starts a program': 'process.getBuiltinModule("child_process").spawnSync("/bin/sh").error.code',
  'connects to this server': `
    const { connect } = process.getBuiltinModule('net');
    return await new Promise((resolve) => connect(80, '127.0.0.1').on('error', (error) => resolve(error.code)));
  `,
  'kills all processes': 'try { process.kill(-1, "SIGKILL") } catch (error) { return error.code }',
  'never ends': 'for (;;);',
  'takes all memory': 'const all = []; for (;;) all.push(Buffer.alloc(2 ** 20, 1));',
  'answers with code': '() => process.exit()',
  'answers with too much': 'Buffer.alloc(8 * 2 ** 20)',
};
