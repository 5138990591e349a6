// The outline of a module: which code gives each of its variables and exports a value, and which names that
// code uses. A call may put code into an object as well (`list.push(f)`), which counts where the module
// itself does so. Made when a call may meet a module on two roads (roads.ts).
// Not here: following it (reach.ts).

import type { AnyNode } from 'acorn';
import {
  type Analysis,
  type Binding,
  childrenOf,
  isFunctionNode,
  resolve,
  runsOnce,
} from './scope.js';

/** Code that gives a variable or export its value. */
export interface Part {
  readonly start: number;
  readonly end: number;
  /** True: it calls something where it stands, so state in the variables of that call belongs to it. */
  readonly isMade: boolean;
  /** The property that a pattern takes from a module. */
  readonly member: string | undefined;
}

export interface Use {
  readonly start: number;
  /** `undefined`: `exports` or `module` of CommonJS. */
  readonly binding: Binding | undefined;
  /** The property of it that is used; `undefined`: the whole. */
  readonly member: string | undefined;
}

/** `require('…')` or `import('…')`. */
interface Load {
  readonly start: number;
  readonly source: string;
  readonly isRequired: boolean;
}

export interface From {
  readonly source: string;
  readonly imported: string;
}

/** The variables of a module, by its source. */
export interface Outline {
  readonly analysis: Analysis;
  readonly parts: ReadonlyMap<Binding, readonly Part[]>;
  /** Uses of variables that exist once, and of the exports of CommonJS. */
  readonly uses: readonly Use[];
  readonly loads: readonly Load[];
  readonly exported: ReadonlyMap<string, readonly Part[]>;
  readonly reexported: ReadonlyMap<string, From>;
  /** Modules in `export * from`. */
  readonly stars: readonly string[];
  /** Variables that are compared with something. */
  readonly compared: ReadonlySet<Binding>;
  /** Variables of which a property is assigned. */
  readonly extended: ReadonlySet<Binding>;
}

const outlines = new WeakMap<Analysis, Outline>();

export function outlineOf(analysis: Analysis): Outline {
  const known = outlines.get(analysis);
  if (known !== undefined) return known;
  const outline = new Outliner(analysis);
  outlines.set(analysis, outline);
  return outline;
}

class Outliner implements Outline {
  readonly analysis: Analysis;
  readonly parts = new Map<Binding, Part[]>();
  readonly uses: Use[] = [];
  readonly loads: Load[] = [];
  readonly exported = new Map<string, Part[]>();
  readonly reexported = new Map<string, From>();
  readonly stars: string[] = [];
  readonly compared = new Set<Binding>();
  readonly extended = new Set<Binding>();
  readonly #declared = new Map<number, Binding>();
  readonly #referred = new Map<number, Binding | undefined>();
  readonly #members = new Map<number, string>();

  constructor(analysis: Analysis) {
    this.analysis = analysis;
    for (const { bindings } of analysis.scopes) {
      for (const binding of bindings.values()) {
        // A class has its name inside of it once more.
        if (!this.#declared.has(binding.start)) this.#declared.set(binding.start, binding);
      }
    }
    for (const { name, start, scope } of analysis.references) {
      this.#referred.set(start, resolve(scope, name));
    }
    this.#visit(analysis.root.node);
    for (const { name, start } of analysis.references) {
      const binding = this.#referred.get(start);
      const member = this.#members.get(start);
      const isOnce = binding !== undefined && runsOnce(binding.scope, analysis);
      const isExports = binding === undefined && (name === 'exports' || name === 'module');
      if (isOnce || isExports) this.uses.push({ start, binding, member });
    }
    this.uses.sort((a, b) => a.start - b.start);
  }

  #visit(node: AnyNode): void {
    this.#note(node);
    for (const child of childrenOf(node)) this.#visit(child);
  }

  #note(node: AnyNode): void {
    switch (node.type) {
      case 'FunctionDeclaration':
      case 'ClassDeclaration':
        if (node.id) this.#give(this.#declared.get(node.id.start), node);
        return;
      case 'VariableDeclarator':
        if (node.init) this.#declare(node.id, node.init);
        return;
      case 'AssignmentExpression':
        this.#assign(node.left, node.right);
        return;
      case 'UpdateExpression':
        if (node.argument.type === 'MemberExpression') this.#extend(rootOf(node.argument));
        return;
      case 'BinaryExpression':
        if (/^[!=]==?$/.test(node.operator)) {
          for (const side of [node.left, node.right]) {
            const binding = this.#referred.get(side.start);
            if (side.type === 'Identifier' && binding !== undefined) this.compared.add(binding);
          }
        }
        return;
      case 'CallExpression':
        this.#call(node);
        return;
      case 'ImportExpression':
        this.#load(node.source, node.start, false);
        return;
      case 'MemberExpression':
        this.#member(node);
        return;
      case 'ExportDefaultDeclaration':
        if (node.declaration.type !== 'Identifier') this.#export('default', node.declaration);
        return;
      case 'ExportNamedDeclaration':
        for (const { local, exported } of node.source ? node.specifiers : []) {
          const source = String(node.source?.value);
          this.reexported.set(nameIn(exported), { source, imported: nameIn(local) });
        }
        return;
      case 'ExportAllDeclaration': {
        const source = String(node.source.value);
        if (node.exported) this.reexported.set(nameIn(node.exported), { source, imported: '*' });
        else this.stars.push(source);
        return;
      }
      default:
    }
  }

  #member(node: Extract<AnyNode, { type: 'MemberExpression' }>): void {
    const name = propertyOf(node);
    if (name === undefined) return;
    const { object } = node;
    if (object.type !== 'Identifier' && !isModuleExports(object)) return;
    // In `module.exports.name` the outer one comes first.
    if (!this.#members.has(object.start)) this.#members.set(object.start, name);
  }

  #declare(pattern: AnyNode, init: AnyNode): void {
    if (pattern.type === 'Identifier') {
      this.#give(this.#declared.get(pattern.start), init);
    } else if (pattern.type === 'ObjectPattern') {
      for (const property of pattern.properties) {
        const key =
          property.type === 'Property' && !property.computed ? nameIn(property.key) : undefined;
        for (const each of identifiersIn(property)) {
          this.#give(this.#declared.get(each.start), init, key);
        }
      }
    } else {
      for (const each of identifiersIn(pattern)) this.#give(this.#declared.get(each.start), init);
    }
  }

  #give(binding: Binding | undefined, node: AnyNode, member?: string): void {
    if (binding === undefined) return;
    const parts = this.parts.get(binding) ?? [];
    this.parts.set(binding, parts);
    parts.push(partOf(node, member));
  }

  #export(name: string, node: AnyNode): void {
    const parts = this.exported.get(name) ?? [];
    this.exported.set(name, parts);
    parts.push(partOf(node));
  }

  #extend(root: AnyNode): void {
    const binding = this.#referred.get(root.start);
    if (root.type === 'Identifier' && binding !== undefined) this.extended.add(binding);
  }

  #assign(left: AnyNode, right: AnyNode): void {
    if (left.type !== 'MemberExpression') {
      for (const each of identifiersIn(left)) this.#give(this.#referred.get(each.start), right);
      return;
    }
    const root = rootOf(left);
    this.#extend(root);
    this.#give(this.#referred.get(root.start), right);
    if (root.type !== 'Identifier' || this.#referred.get(root.start) !== undefined) return;
    const name = propertyOf(left);
    if (name === undefined) return;
    const isExports = isName(left.object, 'exports') || isModuleExports(left.object);
    if (isExports) this.#export(name, right);
    if (isModuleExports(left) && right.type === 'ObjectExpression') this.#exportAll(right);
  }

  /** `module.exports = { … }` */
  #exportAll({ properties }: Extract<AnyNode, { type: 'ObjectExpression' }>): void {
    for (const property of properties) {
      if (property.type === 'Property' && !property.computed) {
        this.#export(nameIn(property.key), property.value);
      }
    }
  }

  /**
   * Notes values that a call may put into an object: `list.push(f)`, `Object.assign(held, { f })`, `add(map,
   * f)`.
   */
  #call({ callee, arguments: given, start }: Extract<AnyNode, { type: 'CallExpression' }>): void {
    const [first, second, third] = given;
    if (isName(callee, 'require') && first) this.#load(first, start, true);
    const isDefined =
      first && second?.type === 'Literal' && (isName(first, 'exports') || isModuleExports(first));
    if (isDefined && third) this.#export(String(second.value), third);
    const holders = [...given, ...(callee.type === 'MemberExpression' ? [rootOf(callee)] : [])];
    for (const holder of holders) {
      if (holder.type !== 'Identifier') continue;
      for (const each of given) {
        if (each !== holder && mayBeCode.test(each.type)) {
          this.#give(this.#referred.get(holder.start), each);
        }
      }
    }
  }

  #load(source: AnyNode, start: number, isRequired: boolean): void {
    if (source.type !== 'Literal' || typeof source.value !== 'string') return;
    this.loads.push({ start, source: source.value, isRequired });
  }
}

const mayBeCode =
  /^(?:Identifier|FunctionExpression|ArrowFunctionExpression|ClassExpression|ObjectExpression|ArrayExpression)$/;

function partOf(node: AnyNode, member?: string): Part {
  return { start: node.start, end: node.end, isMade: isMade(node), member };
}

/** True: a call runs where the code stands, outside of its functions. */
function isMade(node: AnyNode): boolean {
  if (node.type === 'CallExpression' && isName(node.callee, 'require')) return false;
  if (/^(?:Call|New|TaggedTemplate|Await)Expression$/.test(node.type)) return true;
  if (isFunctionNode(node)) return false;
  if (node.type === 'MethodDefinition') return false;
  if (node.type === 'PropertyDefinition' && !node.static) return false;
  return childrenOf(node).some(isMade);
}

function rootOf(node: AnyNode): AnyNode {
  return node.type === 'MemberExpression' ? rootOf(node.object) : node;
}

function propertyOf({
  computed,
  property,
}: Extract<AnyNode, { type: 'MemberExpression' }>): string | undefined {
  if (!computed && property.type === 'Identifier') return property.name;
  const isText = property.type === 'Literal' && typeof property.value === 'string';
  return isText ? String(property.value) : undefined;
}

function isName(node: AnyNode, name: string): boolean {
  return node.type === 'Identifier' && node.name === name;
}

function isModuleExports(node: AnyNode): boolean {
  return (
    node.type === 'MemberExpression' &&
    isName(node.object, 'module') &&
    propertyOf(node) === 'exports'
  );
}

function nameIn(node: AnyNode): string {
  if (node.type === 'Identifier') return node.name;
  return node.type === 'Literal' ? String(node.value) : '';
}

function identifiersIn(node: AnyNode): AnyNode[] {
  return node.type === 'Identifier' ? [node] : childrenOf(node).flatMap(identifiersIn);
}
