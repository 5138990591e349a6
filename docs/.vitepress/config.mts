// The site of docs/: the guides, the reference of errors and metrics, the measurements and the design pages, with
// the types of every export beside them (made by typedoc, npm run docs). Static files without a server.
import { defineConfig } from 'vitepress';

const guide = (text: string, name: string) => ({ text, link: `/guide/${name}` });
const design = (text: string, name: string) => ({ text, link: `/design/${name}` });

/** Links out of docs/ lead to files of the repository, which the site does not have: their text stays. */
const outside = /^(\.\.\/)+(?!design\/|guide\/|evidence|errors|metrics|benchmarks)/;

export default defineConfig({
  title: 'manycore',
  description: 'Use every core from Node.js, and keep the event loops responsive while you do',
  lang: 'en',
  base: process.env['SITE_BASE'] ?? '/',
  cacheDir: 'node_modules/.cache',
  srcExclude: ['api/**', 'node_modules/**'],
  outDir: '../dist/site',
  cleanUrls: false,
  vite: { publicDir: '../dist/site-public' },
  markdown: {
    config: (md) => {
      md.core.ruler.push('links out of docs', ({ tokens }) => {
        for (const { children } of tokens) dropOutsideLinks(children ?? []);
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'First steps', link: '/guide/first-steps' },
      { text: 'Types', link: '/api/index.html', target: '_self' },
      { text: 'Errors', link: '/errors' },
      { text: 'Benchmarks', link: '/benchmarks' },
    ],
    sidebar: [
      {
        text: 'Calls and maps',
        items: [
          guide('First steps', 'first-steps'),
          guide('Calls and pools', 'pool'),
          guide('The parallel map', 'pmap'),
          guide('What travels', 'what-travels'),
          guide('Shared state', 'stm'),
          guide('Code that is not trusted', 'sandbox'),
          guide('When workers fail', 'failing-workers'),
          guide('Test runners, compilers, bundlers', 'runners'),
          guide('Coming from other pools', 'from-other-pools'),
        ],
      },
      {
        text: 'Servers and units',
        items: [
          guide('Serving', 'serve'),
          guide('Coming from PM2', 'from-pm2'),
          guide('Clients that stay with one loop', 'sticky'),
          guide('Units and the bus', 'units'),
          guide('Clusters', 'cluster'),
          guide('Shared data', 'shared-data'),
          guide('Platforms', 'platforms'),
          guide('In containers', 'containers'),
        ],
      },
      {
        text: 'Seeing and tuning',
        items: [
          guide('top and dashboard', 'top'),
          guide('doctor', 'doctor'),
          guide('trace', 'trace'),
          guide('profile', 'profile'),
          guide('tune', 'tune'),
          guide('Metrics', 'metrics'),
          guide('OpenTelemetry', 'opentelemetry'),
        ],
      },
      {
        text: 'Examples',
        items: [guide('The smart TV', 'smart-tv'), guide('The plagiarism checker', 'plagiarism')],
      },
      {
        text: 'Reference',
        items: [
          { text: 'Types', link: '/api/index.html', target: '_self' },
          { text: 'Error codes', link: '/errors' },
          { text: 'Metrics', link: '/metrics' },
          { text: 'Benchmarks', link: '/benchmarks' },
          { text: 'Evidence', link: '/evidence' },
        ],
      },
      {
        text: 'Design',
        collapsed: true,
        items: [
          design('Calls and pools', 'pool'),
          design('The parallel map', 'pmap'),
          design('What travels', 'context'),
          design('Channels', 'channels'),
          design('Shared memory', 'shared-memory'),
          design('Large results', 'large-results'),
          design('Transactional memory', 'stm'),
          design('Partitions', 'partitions'),
          design('Serving', 'serve'),
          design('Without the native core', 'without-core'),
          design('Units and the bus', 'loops'),
          design('The bus of a machine', 'local-bus'),
          design('Versions of code', 'code-versions'),
          design('Shared data', 'shared-data'),
          design('Monitors and groups', 'groups'),
          design('Cases of Vert.x', 'vertx'),
          design('Observing', 'observe'),
          design('Metrics', 'metrics'),
          design('top', 'top'),
          design('trace', 'trace'),
          design('tune', 'tune'),
          design('libuv’s thread pool', 'blocking-pool'),
          design('Tests', 'tests'),
          design('Lines of Node', 'node-lines'),
          design('How to add', 'how-to-add'),
          design('Open', 'open'),
        ],
      },
    ],
  },
});

interface Token {
  type: string;
  tag: string;
  content: string;
  attrGet(name: string): string | null;
  attrs: [string, string][] | null;
}

function dropOutsideLinks(tokens: Token[]): void {
  let isOutside = false;
  for (const token of tokens) {
    if (token.type === 'link_open') isOutside = outside.test(token.attrGet('href') ?? '');
    if (!isOutside || !/^link_/.test(token.type)) continue;
    token.tag = 'span';
    token.attrs = null;
    if (token.type === 'link_close') isOutside = false;
  }
}
