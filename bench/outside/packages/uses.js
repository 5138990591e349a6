// 46 packages: an expression that uses each inside a function, and objects that a program makes with it at home
// and captures. `it` is the object; what its expression gives must be the same in a worker.

const use = (name, imports, inside, objects = {}) => ({ name, imports, inside, objects });

export const uses = [
  use('lodash', "import _ from 'lodash';", '_.chunk([1, 2, 3, 4], 2)', {
    memoize: ['_.memoize((x) => x * 2)', '[it(4), it(4), it.cache.size]'],
    curry: ['_.curry((a, b) => a + b)', 'it(1)(2)'],
    template: ["_.template('hi <%= name %>')", "it({ name: 'x' })"],
  }),
  use(
    'lodash-es',
    "import { groupBy, once, flow } from 'lodash-es';",
    '[groupBy([1, 2, 3], (x) => x % 2), flow((x) => x + 1)(1)]',
    {
      once: ['once(() => ({ a: 1 }))', '[it(), it() === it()]'],
      flow: ['flow((x) => x + 1, (x) => x * 2)', 'it(3)'],
    },
  ),
  use('axios', "import axios from 'axios';", "axios.getUri({ url: '/a', params: { b: 1 } })", {
    instance: ["axios.create({ baseURL: 'http://x' })", "it.getUri({ url: '/a' })"],
  }),
  use(
    'typescript',
    "import ts from 'typescript';",
    "ts.transpileModule('let a: number = 1', {}).outputText",
    {
      'source file': [
        "ts.createSourceFile('a.ts', 'let a = 1', ts.ScriptTarget.ES2022)",
        'it.statements.length',
      ],
    },
  ),
  use(
    'protobufjs',
    "import protobuf from 'protobufjs';",
    `protobuf.parse('syntax = "proto3"; message A { int32 b = 1; }').root.lookupType('A').encode({ b: 5 }).finish().length`,
    {
      type: [
        `protobuf.parse('syntax = "proto3"; message A { int32 b = 1; }').root.lookupType('A')`,
        'it.decode(it.encode({ b: 5 }).finish()).b',
      ],
    },
  ),
  use(
    'sql.js',
    "import initSqlJs from 'sql.js';",
    "initSqlJs().then((SQL) => new SQL.Database().exec('select 1 + 1 as two'))",
  ),
  use(
    'hash-wasm',
    "import { argon2id, argon2Verify, md5 } from 'hash-wasm';",
    "argon2id({ password: 'x', salt: 'saltsalt', parallelism: 1, iterations: 2, memorySize: 64, hashLength: 16 })",
  ),
  use('joi', "import Joi from 'joi';", 'Joi.object({ a: Joi.number() }).validate({ a: 1 }).value', {
    schema: [
      'Joi.object({ a: Joi.number().min(2) })',
      '[it.validate({ a: 3 }).value, it.validate({ a: 1 }).error?.message]',
    ],
  }),
  use(
    'natural',
    "import natural from 'natural';",
    "[natural.PorterStemmer.stem('running'), new natural.WordTokenizer().tokenize('a b')]",
    {
      tokenizer: ['new natural.WordTokenizer()', "it.tokenize('one two')"],
    },
  ),
  use(
    'nunjucks',
    "import nunjucks from 'nunjucks';",
    "nunjucks.renderString('hi {{ name }}', { name: 'x' })",
    {
      template: ["nunjucks.compile('hi {{ name }}')", "it.render({ name: 'x' })"],
    },
  ),
  use(
    'd3',
    "import * as d3 from 'd3';",
    "[d3.mean([1, 2, 3]), d3.scaleLinear([0, 1], [0, 10])(0.5), d3.csvParse('a,b\\n1,2').columns]",
    {
      'linear scale': ['d3.scaleLinear([0, 1], [0, 10])', '[it(0.5), it.invert(5), it.ticks(3)]'],
      'ordinal scale': ["d3.scaleOrdinal(['a', 'b'], [1, 2])", "it('b')"],
      line: ['d3.line()', 'it([[0, 0], [1, 1]])'],
      csv: ["d3.csvParse('a,b\\n1,2')", '[it.columns, it.length]'],
    },
  ),
  use('ramda', "import * as R from 'ramda';", 'R.pipe(R.map(R.inc), R.sum)([1, 2])', {
    pipe: ['R.pipe(R.map(R.inc), R.sum)', 'it([1, 2])'],
    curry: ['R.curry((a, b) => a * b)', 'it(2)(3)'],
  }),
  use(
    'luxon',
    "import { DateTime, Duration } from 'luxon';",
    "DateTime.fromISO('2020-01-02', { zone: 'utc' }).plus({ days: 1 }).toISODate()",
    {
      DateTime: [
        "DateTime.fromISO('2020-01-02', { zone: 'utc' })",
        'it.plus({ days: 1 }).toISODate()',
      ],
      Duration: ['Duration.fromObject({ hours: 2 })', "it.as('minutes')"],
    },
  ),
  use(
    'moment',
    "import moment from 'moment';",
    "moment.utc('2020-01-02').add(1, 'day').format('YYYY-MM-DD')",
    {
      moment: ["moment.utc('2020-01-02')", "it.add(1, 'day').format('YYYY-MM-DD')"],
      duration: ['moment.duration(90, "minutes")', 'it.asHours()'],
    },
  ),
  use(
    'decimal.js',
    "import { Decimal } from 'decimal.js';",
    "new Decimal('0.1').plus('0.2').toString()",
    {
      Decimal: ["new Decimal('0.1')", "it.plus('0.2').toString()"],
    },
  ),
  use(
    'mathjs',
    "import { evaluate, parse, matrix, unit } from 'mathjs';",
    "String(evaluate('2 * 3 + sqrt(16)'))",
    {
      compiled: ["parse('2 * x').compile()", 'it.evaluate({ x: 4 })'],
      matrix: ['matrix([[1, 2], [3, 4]])', 'it.size()'],
      unit: ["unit('5 cm')", "it.toNumber('mm')"],
    },
  ),
  use(
    'mobx',
    "import { observable, computed, autorun } from 'mobx';",
    '(() => { const o = observable({ a: 1 }); const seen = []; autorun(() => seen.push(o.a)); o.a = 2; return seen; })()',
    {
      box: ['observable.box(3)', 'it.get()'],
      computed: ['computed(() => 4)', 'it.get()'],
    },
  ),
  use(
    'nanoid',
    "import { nanoid, customAlphabet } from 'nanoid';",
    "[nanoid().length, customAlphabet('a', 5)()]",
    {
      customAlphabet: ["customAlphabet('a', 5)", 'it()'],
    },
  ),
  use(
    'cbor-x',
    "import { encode, decode, Encoder } from 'cbor-x';",
    'decode(encode({ a: [1, 2] }))',
    {
      Encoder: ['new Encoder()', 'it.decode(it.encode({ a: 1 }))'],
    },
  ),
  use('zod', "import { z } from 'zod';", 'z.object({ a: z.number() }).parse({ a: 1 })', {
    schema: [
      'z.object({ a: z.number() })',
      "[it.parse({ a: 1 }), it.safeParse({ a: 'x' }).success]",
    ],
  }),
  use(
    'handlebars',
    "import Handlebars from 'handlebars';",
    "Handlebars.compile('hi {{name}}')({ name: 'x' })",
    {
      template: ["Handlebars.compile('hi {{name}}')", "it({ name: 'x' })"],
    },
  ),
  use(
    'highlight.js',
    "import hljs from 'highlight.js';",
    "hljs.highlight('let a = 1', { language: 'javascript' }).value",
    {
      language: ["hljs.getLanguage('json')", 'it.name'],
    },
  ),
  use(
    'xlsx',
    "import XLSX from 'xlsx';",
    'XLSX.utils.sheet_to_csv(XLSX.utils.aoa_to_sheet([[1, 2]]))',
    {
      sheet: ['XLSX.utils.aoa_to_sheet([[1, 2]])', 'XLSX.utils.sheet_to_json(it, { header: 1 })'],
    },
  ),
  use('ejs', "import ejs from 'ejs';", "ejs.render('hi <%= name %>', { name: 'x' })", {
    template: ["ejs.compile('hi <%= name %>')", "it({ name: 'x' })"],
  }),
  use(
    'dayjs',
    "import dayjs from 'dayjs';",
    "dayjs('2020-01-02').add(1, 'day').format('YYYY-MM-DD')",
    {
      dayjs: ["dayjs('2020-01-02')", "it.add(1, 'day').format('YYYY-MM-DD')"],
    },
  ),
  use('marked', "import { marked, Marked, Lexer } from 'marked';", "marked.parse('# a')", {
    Marked: ['new Marked({ gfm: true })', "it.parse('# a')"],
  }),
  use('yaml', "import YAML from 'yaml';", "YAML.parse('a: [1, 2]')", {
    document: ["YAML.parseDocument('a: 1')", "[it.get('a'), String(it)]"],
  }),
  use('ajv', "import { Ajv } from 'ajv';", "new Ajv().compile({ type: 'number' })(1)", {
    'compiled schema': [
      "new Ajv().compile({ type: 'object', required: ['a'] })",
      '[it({ a: 1 }), it({})]',
    ],
  }),
  use(
    'acorn',
    "import * as acorn from 'acorn';",
    "acorn.parse('let a = 1', { ecmaVersion: 2022 }).body.length",
    {
      node: ["acorn.parse('let a = 1', { ecmaVersion: 2022 })", '[it.type, it.body.length]'],
    },
  ),
  use('semver', "import semver from 'semver';", "semver.satisfies('1.2.3', '^1.0.0')", {
    SemVer: ["new semver.SemVer('1.2.3')", "it.inc('minor').version"],
    Range: ["new semver.Range('^1.0.0')", "it.test('1.5.0')"],
  }),
  use('uuid', "import { v4, v5, validate } from 'uuid';", "[validate(v4()), v5('a', v5.URL)]"),
  use(
    'bignumber.js',
    "import BigNumber from 'bignumber.js';",
    "new BigNumber('0.1').plus('0.2').toString()",
    {
      BigNumber: ["new BigNumber('0.1')", "it.plus('0.2').toString()"],
    },
  ),
  use(
    'immutable',
    "import { Map as IMap, List, Record } from 'immutable';",
    'IMap({ a: 1 }).set("b", 2).toJS()',
    {
      Map: ['IMap({ a: 1 })', 'it.set("b", 2).toJS()'],
      List: ['List([1, 2])', 'it.push(3).toArray()'],
      Record: ['Record({ a: 1 })({ a: 2 })', 'it.toJS()'],
    },
  ),
  use(
    'rxjs',
    "import { of, map, toArray, firstValueFrom, BehaviorSubject } from 'rxjs';",
    'firstValueFrom(of(1, 2).pipe(map((x) => x * 2), toArray()))',
    {
      observable: ['of(1, 2).pipe(map((x) => x * 2), toArray())', 'firstValueFrom(it)'],
      subject: ['new BehaviorSubject(5)', 'it.getValue()'],
    },
  ),
  use(
    'date-fns',
    "import { addDays, formatISO } from 'date-fns';",
    'addDays(new Date(0), 1).getTime()',
    {
      imported: ['addDays', 'it(new Date(0), 1).getTime()'],
    },
  ),
  use('cheerio', "import * as cheerio from 'cheerio';", "cheerio.load('<b>x</b>')('b').text()", {
    document: ["cheerio.load('<b>x</b>')", "it('b').text()"],
  }),
  use(
    'iconv-lite',
    "import iconv from 'iconv-lite';",
    "iconv.decode(iconv.encode('ä', 'latin1'), 'latin1')",
    {
      decoder: ["iconv.getDecoder('latin1')", 'it.write(Buffer.from([228]))'],
    },
  ),
  use(
    'fast-xml-parser',
    "import { XMLParser } from 'fast-xml-parser';",
    "new XMLParser().parse('<a><b>1</b></a>')",
    {
      parser: ['new XMLParser()', "it.parse('<a><b>1</b></a>')"],
    },
  ),
  use('papaparse', "import Papa from 'papaparse';", "Papa.parse('a,b\\n1,2').data", {
    result: ["Papa.parse('a,b\\n1,2')", 'it.data'],
  }),
  use('msgpackr', "import { pack, unpack, Packr } from 'msgpackr';", 'unpack(pack({ a: 1 }))', {
    Packr: ['new Packr()', 'it.unpack(it.pack({ a: 1 }))'],
  }),
  use(
    'jsonwebtoken',
    "import jwt from 'jsonwebtoken';",
    "jwt.verify(jwt.sign({ a: 1 }, 's', { noTimestamp: true }), 's')",
  ),
  use(
    'bcryptjs',
    "import bcrypt from 'bcryptjs';",
    "bcrypt.compareSync('x', bcrypt.hashSync('x', 4))",
  ),
  use(
    'pako',
    "import * as pako from 'pako';",
    '[...pako.inflate(pako.deflate(new Uint8Array([1, 2, 3])))]',
  ),
  use('markdown-it', "import MarkdownIt from 'markdown-it';", "new MarkdownIt().render('# a')", {
    instance: ['new MarkdownIt()', "it.render('# a')"],
  }),
  use(
    'csv-parse',
    "import { parse } from 'csv-parse/sync';",
    "parse('a,b\\n1,2', { columns: true })",
    {
      imported: ['parse', "it('a\\n1')"],
    },
  ),
  use('postcss', "import postcss from 'postcss';", "postcss.parse('a { b: c }').first.selector", {
    root: ["postcss.parse('a { b: c }')", '[it.first.selector, it.toString()]'],
  }),
];
