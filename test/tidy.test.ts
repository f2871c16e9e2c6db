/**
 * Goal: the source stays in its layers and within its habits: who may import whom, no cycles, a core without time, chance
 * or waiting, files that can be read in one go.
 * Method: every file is parsed; what its syntax tree holds is compared with the tables below. They are the rule.
 */
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { parseSync } from "vite";

interface Area {
  /** The files: a folder with everything below it, or one file. The longest that fits counts. */
  readonly path: string;
  /** Areas it may import beside itself; `*` for all. A folder stands for everything below it that is no area of its own. */
  readonly imports: readonly string[];
  /** npm packages, by name or by scope. */
  readonly packages: readonly string[];
  readonly node: boolean;
}

const all = { imports: ["*"], packages: ["*"], node: true };
const ports = ["src/store"];

const areas: readonly Area[] = [
  { path: "src/base", imports: [], packages: ["canonicalize"], node: true },
  { path: "src/core", imports: ["src/base"], packages: [], node: false },
  { path: "src/wire", imports: ["src/base", "src/core"], packages: ["zod", "msgpackr"], node: true },
  { path: "src/store", imports: ["src/base", "src/core", "src/wire"], packages: [], node: false },
  {
    path: "src/store/jetstream",
    imports: ["src/base", "src/core", "src/wire", ...ports],
    packages: ["@nats-io/", "msgpackr"],
    node: true,
  },
  { path: "src/store/simulated", imports: ["src/base", ...ports], packages: [], node: false },
  {
    path: "src/store/projection",
    imports: ["src/base", "src/core", "src/wire", ...ports],
    packages: ["sorted-btree"],
    node: false,
  },
  // The authority and what stands on it know the port alone, whichever store is behind it.
  {
    path: "src/authority",
    imports: ["src/base", "src/core", "src/wire", ...ports, "src/store/projection"],
    packages: ["zod"],
    node: true,
  },
  {
    path: "src/http",
    imports: ["src/base", "src/core", "src/wire", "src/authority"],
    packages: ["hono", "@hono/node-server", "prom-client", "zod"],
    node: true,
  },
  // Tokens and keys: what has to do with signatures, and nothing that decides.
  { path: "src/grants", imports: ["src/base", "src/core", "src/wire"], packages: ["jose"], node: true },
  {
    path: "src/nats",
    imports: ["src/base", "src/core", "src/wire", "src/authority"],
    packages: ["@nats-io/", "prom-client"],
    node: true,
  },
  { path: "src/sdk", imports: ["src/base", "src/core", "src/wire"], packages: ["@nats-io/"], node: true },
  // Grants are signed where their private keys are, on somebody's machine: the commands do it, no node ever does.
  { path: "src/cli", imports: ["src/base", "src/core", "src/grants", "src/sdk"], packages: [], node: true },
  { path: "src/console", imports: ["src/sdk"], packages: [], node: true },
  { path: "src/index.ts", imports: ["src/base", "src/core", "src/wire", "src/sdk"], packages: [], node: false },
  // A file that others may copy: it needs nothing.
  { path: "src/fence.ts", imports: [], packages: [], node: false },
  { path: "src/config.ts", imports: ["*"], packages: ["zod"], node: true },
  { path: "src/settings.ts", imports: ["*"], packages: ["zod"], node: false },
  // What wires a node, looks at a deployment, and runs one on this machine; main.ts calls them.
  {
    path: "src/doctor",
    imports: ["src/base", ...ports, "src/store/jetstream"],
    packages: ["@nats-io/"],
    node: true,
  },
  // Who may do what on NATS, keys and certificates: what a deployment is given before it starts.
  {
    path: "src/secure",
    imports: ["src/base", "src/wire", "src/store/jetstream", "cluster"],
    packages: ["@nats-io/"],
    node: true,
  },
  { path: "src/node", ...all },
  {
    path: "src/local",
    imports: ["src/base", "src/core", "src/sdk", "src/cli", "cluster"],
    packages: ["pino"],
    node: true,
  },
  { path: "src/testing.ts", ...all },
  { path: "src/main.ts", ...all },
  { path: "cluster", imports: ["src/base"], packages: [], node: true },
  {
    path: "chaos",
    imports: ["src/base", "src/core", "src/wire", "src/sdk", "cluster"],
    packages: ["@nats-io/", "nats", "zod"],
    node: true,
  },
  { path: "bench", ...all },
  // What users of the package might write: they have its entry points and nothing else.
  { path: "examples", imports: ["src/fence.ts", "src/index.ts"], packages: ["@nats-io/"], node: true },
  { path: "test", ...all },
];

const entryPoints = ["src/index.ts", "src/fence.ts", "src/testing.ts"];
const LINES_MAX = 400;

/** What core must do without: time, chance, the machine, and waiting. */
const impure = new Set(
  (
    "Date performance process crypto globalThis Buffer require Promise fetch console " +
    "setTimeout setInterval setImmediate queueMicrotask structuredClone"
  ).split(" "),
);

/** A node of a syntax tree, as far as these checks care. */
interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  /** Every module it names, whether a value or a type comes from it. */
  readonly imported: readonly string[];
  readonly nodes: readonly SyntaxNode[];
}

const root = join(import.meta.dirname, "..");
const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

function flatten(top: unknown): SyntaxNode[] {
  const nodes: SyntaxNode[] = [];
  const left: unknown[] = [top];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (Array.isArray(value)) left.push(...value);
    else if (isNode(value)) {
      nodes.push(value);
      left.push(...Object.values(value).filter((field) => typeof field === "object" && field !== null));
    }
  }
  return nodes;
}

function load(path: string): SourceFile {
  const text = readFileSync(join(root, path), "utf8");
  const { program, module, errors } = parseSync(path, text);
  expect(errors, path).toEqual([]);
  const requests = [
    ...module.staticImports.map((each) => each.moduleRequest.value),
    ...module.staticExports.flatMap((each) => each.entries.map((entry) => entry.moduleRequest?.value)),
    ...module.dynamicImports.map(({ moduleRequest }) => text.slice(moduleRequest.start + 1, moduleRequest.end - 1)),
  ];
  const imported = [...new Set(requests.filter((request) => request !== undefined))];
  return { path, text, imported, lines: text.trimEnd().split("\n").length, nodes: flatten(program) };
}

const sourceFiles = ["src", "cluster", "chaos", "bench", "examples", "test"].flatMap((folder) => {
  try {
    const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
    return names.filter((name) => name.endsWith(".ts")).map((name) => load(`${folder}/${name}`));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
});
const inSource = sourceFiles.filter((file) => file.path.startsWith("src/"));

const isWithin = (path: string, area: string): boolean => path === area || path.startsWith(`${area}/`);

function areaOf(path: string): Area | undefined {
  const fitting = areas.filter((area) => isWithin(path, area.path));
  return fitting.sort((left, right) => right.path.length - left.path.length)[0];
}

const targetOf = (from: string, request: string): string => normalize(join(dirname(from), request));

function problemOfImport(file: SourceFile, request: string): string | undefined {
  const area = areaOf(file.path);
  if (area === undefined) return "belongs to no area";
  if (request.startsWith("node:")) return area.node ? undefined : `may not import ${request}`;
  if (request.startsWith(".")) {
    const target = areaOf(targetOf(file.path, request))?.path;
    const allowed = target === area.path || area.imports.includes("*") || area.imports.includes(target ?? "");
    return allowed ? undefined : `may not import ${request}`;
  }
  const allowed = area.packages.some(
    (name) => name === "*" || request === name || request.startsWith(name.endsWith("/") ? name : `${name}/`),
  );
  return allowed ? undefined : `may not import the package ${request}`;
}

/** The cycles that a walk along the imports meets, each by the files on it. */
function cycles(): string[] {
  const byPath = new Map(sourceFiles.map((file) => [file.path, file]));
  const found: string[] = [];
  const done = new Set<string>();
  const walk = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path].join(" → "));
    if (done.has(path) || trail.includes(path)) return;
    const requests = byPath.get(path)?.imported.filter((request) => request.startsWith(".")) ?? [];
    for (const request of requests) walk(targetOf(path, request), [...trail, path]);
    done.add(path);
  };
  for (const file of sourceFiles) walk(file.path, []);
  return found;
}

const lineOf = (file: SourceFile, node: SyntaxNode): string =>
  `${file.path}:${file.text.slice(0, node.start).split("\n").length}`;

const nodesThat = (files: readonly SourceFile[], matches: (node: SyntaxNode) => boolean): string[] =>
  files.flatMap((file) => file.nodes.filter(matches).map((node) => `${lineOf(file, node)} ${node.type}`));

describe("the layers", () => {
  it("are found", () => {
    expect(sourceFiles.length).toBeGreaterThan(30);
    for (const path of ["src/core/errors.ts", "src/store/store.ts", "test/tidy.test.ts"])
      expect(sourceFiles.map((file) => file.path)).toContain(path);
  });

  it("import only what the table allows", () => {
    const problems = sourceFiles.flatMap((file) =>
      file.imported.flatMap((request) => {
        const problem = problemOfImport(file, request);
        return problem === undefined ? [] : [`${file.path} ${problem}`];
      }),
    );
    expect(problems).toEqual([]);
  });

  it("have no cycles, of types neither", () => {
    expect(cycles()).toEqual([]);
  });

  it("re-export nothing but at the package's entry points", () => {
    const others = sourceFiles.filter((file) => !entryPoints.includes(file.path));
    const found = nodesThat(others, ({ type, source }) => {
      return type === "ExportAllDeclaration" || (type === "ExportNamedDeclaration" && isNode(source));
    });
    expect(found).toEqual([]);
  });
});

describe("the core", () => {
  const core = sourceFiles.filter((file) => file.path.startsWith("src/core/"));

  it("knows no time, no chance, no machine", () => {
    const found = nodesThat(core, (node) => node.type === "Identifier" && impure.has(String(node["name"])));
    const random = nodesThat(core, ({ type, property }) => {
      return type === "MemberExpression" && isNode(property) && property["name"] === "random";
    });
    expect([...found, ...random]).toEqual([]);
  });

  it("never waits", () => {
    const found = nodesThat(core, (node) => node["async"] === true || node.type === "AwaitExpression");
    expect(found).toEqual([]);
  });
});

describe("the habits", () => {
  it(`keep files within ${LINES_MAX} lines`, () => {
    const long = sourceFiles.filter((file) => file.lines > LINES_MAX);
    expect(long.map((file) => `${file.path}: ${file.lines}`)).toEqual([]);
  });

  it("name files in kebab case", () => {
    const named = /^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.ts$/;
    expect(sourceFiles.map((file) => file.path).filter((path) => !named.test(path))).toEqual([]);
  });

  it("leave no notes to self, and silence no check", () => {
    // The brackets keep this file from finding itself.
    const marks = /TO[D]O|FIX[M]E|@ts-[i]gnore|@ts-[n]ocheck|\b(?:it|test|describe)(?:\.each)?\.[o]nly\(/;
    const found = sourceFiles.filter((file) => marks.test(file.text));
    expect(found.map((file) => file.path)).toEqual([]);
  });

  it("do without any, non-null assertions, enums and default exports", () => {
    const unwanted = ["TSAnyKeyword", "TSNonNullExpression", "TSEnumDeclaration", "ExportDefaultDeclaration"];
    expect(nodesThat(inSource, (node) => unwanted.includes(node.type))).toEqual([]);
  });

  it("throw no bare Error", () => {
    const found = nodesThat(inSource, ({ type, callee }) => {
      return type === "NewExpression" && isNode(callee) && callee["name"] === "Error";
    });
    expect(found).toEqual([]);
  });
});
