// Names of classes in the published package: esbuild renames a class whose own body names it. Crashes,
// console.log() and V8's messages would show the other name.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const bundle = new URL('../../bundle/', import.meta.url);
const doors = ['index', 'serve', 'static', 'cgi', 'metrics', 'opentelemetry'] as const;

for (const door of doors) {
  test(`each class that ${door}.js exports has its name, for V8 too`, async () => {
    const exported: object = await import(new URL(`${door}.js`, bundle).href);
    for (const [name, value] of Object.entries(exported)) {
      if (typeof value !== 'function' || !/^class\b/.test(String(value))) continue;
      assert.equal(value.name, name);
      assert.throws(() => Reflect.apply(value, undefined, []), {
        message: `Class constructor ${name} cannot be invoked without 'new'`,
      });
    }
  });
}
