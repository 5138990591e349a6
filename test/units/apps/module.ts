// A unit in a module: greets, and counts its instances in this loop.
import type { UnitContext } from '../../../src/public.js';

let instances = 0;

export default class Greeter {
  start({ bus, instance, loop, config }: UnitContext<{ greeting: string }>): void {
    instances += 1;
    bus.consumer<string>('greet', (message) =>
      message.reply({
        text: `${config.greeting} ${message.body}`,
        instance,
        loop,
        pid: process.pid,
        instances,
      }),
    );
  }

  stop(): void {
    instances -= 1;
  }

  health(): string {
    return `${instances} here`;
  }
}
