// The whole example as one thing that starts and ends: TV, decoding, server, thumb and pages, wired
// together. main.js decides what happens with it.
import { Decoding } from './decoding.js';
import { Events } from './events.js';
import { modes } from './modes/index.js';
import { glowOf } from './picture.js';
import { describePlayer, findPlayer } from './players/index.js';
import { startServer } from './server.js';
import { runStudy } from './study.js';
import { buttons, Television } from './television.js';
import { Thumb } from './thumb.js';

// After the study, presses go on while there are viewers, so that the chart keeps moving.
const livePressesPerSecond = 8;

/** Starts everything but the study. `load`: the facts about the load, `{ decodeMs, … }`. */
export async function startShow(options, picture, load) {
  const show = new Show(options, picture, load);
  await show.start();
  return show;
}

class Show {
  #options;
  #picture;
  #load;
  #television;
  #decoding;
  #events;
  #server;
  #thumb;
  #phase = { text: 'starting', mode: 'idle', isStudy: true };
  #results = [];
  #glow = '#000000';
  #isLive = false;
  #isPressing = false;
  #isClosed = false;

  constructor(options, picture, load) {
    const player = options.player ?? findPlayer();
    this.#options = options;
    this.#picture = picture;
    this.#load = {
      ...load,
      player,
      playedBy: describePlayer(player, options.player !== undefined),
    };
    this.#television = new Television(player, picture.path, () => this.#sendState());
    this.#decoding = new Decoding(picture.bytes, load.intervalMs, (image) => this.#paint(image));
    this.#events = new Events((watchers) => this.#pressLive(watchers));
  }

  /** The facts about the load, the player's name among them. */
  get load() {
    return this.#load;
  }

  get port() {
    return this.#server.address().port;
  }

  async start() {
    const { host, port } = this.#options;
    this.#server = await startServer({
      ...{ host, port, picturePath: this.#picture.path },
      control: {
        press: (button) => this.#press(button),
        setMode: (name) => this.#setMode(name),
        feel: (ms) => this.#feel(ms),
        watch: (answer) => this.#watch(answer),
      },
    });
    const self = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host;
    this.#thumb = new Thumb(`http://${self}:${this.port}/press/play`);
  }

  /** Measures every mode; `onPhase(text, mode)` receives the progress. Leaves the TV idle. */
  async study(signal, onPhase) {
    const results = await runStudy({
      ...{ thumb: this.#thumb, decoding: this.#decoding, options: this.#options, signal },
      onPhase: (text, mode) => {
        onPhase(text, mode);
        this.#setPhase({ text, mode, isStudy: true });
      },
      onSamples: (mode, samples) => {
        for (const [dueMs, ms] of samples) this.#events.addSample([dueMs, ms, mode, 'thumb']);
      },
      onResult: ({ responsesMs: _, ...result }) => {
        this.#results.push(result);
        this.#events.send('results', this.#results);
      },
    });
    this.#setPhase({ text: 'measured', mode: 'idle', isStudy: false });
    this.#isLive = true;
    this.#pressLive(this.#events.watcherCount);
    return results;
  }

  /** Ends every process and connection. Once. */
  async close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isLive = false;
    this.#events.close();
    this.#server.close();
    await Promise.all([this.#thumb.close(), this.#television.close(), this.#decoding.stop()]);
    this.#server.closeAllConnections();
  }

  async #press(button) {
    if (!buttons.includes(button)) throw refusal(404, `there is no button ${button}`);
    await this.#television.press(button);
    return { pressed: button };
  }

  async #setMode(name) {
    if (!Object.hasOwn(modes, name)) throw refusal(404, `there is no mode ${name}`);
    if (this.#phase.isStudy) throw refusal(409, 'measuring: modes can be switched afterwards');
    this.#setPhase({ text: 'switching', mode: name, isStudy: false });
    try {
      await this.#decoding.use(name);
    } catch (error) {
      this.#setPhase({ text: `${name} failed`, mode: 'idle', isStudy: false });
      throw error;
    }
    this.#setPhase({ text: 'live', mode: name, isStudy: false });
    return { mode: name };
  }

  /** Records the time that a visitor's browser measured for a press of its own. */
  #feel(ms) {
    if (!(ms >= 0 && ms < 60_000)) throw refusal(400, 'ms must be a response time in milliseconds');
    this.#events.addSample([Date.now() - ms, ms, this.#phase.mode, 'visitor']);
    return {};
  }

  #watch(answer) {
    const { load } = this;
    this.#events.watch(answer, [
      ['about', { load, modes, buttons, seconds: this.#options.seconds }],
      ['state', this.#state()],
      ['results', this.#results],
    ]);
  }

  #paint(image) {
    this.#glow = glowOf(image);
    this.#events.send('picture', { glow: this.#glow });
  }

  #setPhase(phase) {
    this.#phase = phase;
    this.#sendState();
  }

  #sendState() {
    this.#events.send('state', this.#state());
  }

  #state() {
    return { ...this.#phase, ...this.#television.state, glow: this.#glow };
  }

  // Starts when the first page comes, ends when the last has gone.
  #pressLive(watchers) {
    if (!this.#isLive || watchers > 0 === this.#isPressing) return;
    this.#isPressing = watchers > 0;
    if (!this.#isPressing) return this.#thumb.release();
    const endless = { ratePerSecond: livePressesPerSecond, seconds: 1e9 };
    this.#thumb
      .press(endless, (samples) => {
        for (const [dueMs, ms] of samples) {
          this.#events.addSample([dueMs, ms, this.#phase.mode, 'thumb']);
        }
      })
      .catch((error) => console.error(error.message));
  }
}

function refusal(status, message) {
  return Object.assign(new Error(message), { status });
}
