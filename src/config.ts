import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { z } from "zod";
import { settings, type FileContent, type Setting } from "./settings.ts";

type Settings = typeof settings;
export type SettingName = keyof Settings;
type ValueOf<One> = One extends { readonly shape: z.ZodType<infer Value, string> } ? Value : never;
type Given = { readonly [Name in SettingName]?: ValueOf<Settings[Name]> };

/** Settings that have no initial value. */
type Optional = NatsClientSetting | "keys" | "httpTlsCert" | "httpTlsKey" | "stateDirectory" | "history";

/** What says who connects to NATS, and how: also what `mandate worker` is told. */
const natsClientSettings = [
  "natsUser",
  "natsPassword",
  "natsToken",
  "natsNkeySeedFile",
  "natsCredsFile",
  "natsTlsCa",
  "natsTlsCert",
  "natsTlsKey",
  "natsInboxPrefix",
] as const satisfies readonly SettingName[];
type NatsClientSetting = (typeof natsClientSettings)[number];

/** How to connect to NATS, checked. */
export type NatsClientConfig = { readonly [Name in NatsClientSetting]?: ValueOf<Settings[Name]> };

/** What a node was told, checked. */
export type Config = { readonly [Name in Exclude<SettingName, Optional>]: ValueOf<Settings[Name]> } & {
  readonly [Name in Optional]?: ValueOf<Settings[Name]>;
};

/** One thing that is wrong with what the node was told. */
export interface ConfigIssue {
  /** The variable, or the flag when that was used. */
  readonly source: string;
  /** As it was given; absent when it is a secret, or when nothing was given. */
  readonly value?: string;
  readonly rule: string;
}

/** The configuration can't be used. Its message names each variable or flag, its value and the rule that it breaks. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    super(
      issues
        .map(({ source, value, rule }) => (value === undefined ? `${source} ${rule}` : `${source}=${value} ${rule}`))
        .join("\n"),
    );
    this.issues = issues;
  }
}

export const settingNames = Object.keys(settings) as SettingName[];

const describe = (name: SettingName): Setting<unknown> => settings[name];

/** What a file of each kind holds, as far as can be told at a glance. */
const contents: { readonly [Content in FileContent]: RegExp } = {
  "nkey seed": /^\s*SU[A-Z2-7]{56}\s*$/,
  "NATS credentials": /-BEGIN NATS USER JWT-[^]*-BEGIN USER NKEY SEED-/,
  certificate: /-----BEGIN CERTIFICATE-----/,
  "private key": /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/,
};

/** The rule that a file breaks; `undefined` when it is there and is what it should be. */
function brokenFileRule(file: string, content: FileContent): string | undefined {
  try {
    return contents[content].test(readFileSync(file, "utf8")) ? undefined : `must be a file that holds a ${content}`;
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
    return `must be a file that can be read (${code})`;
  }
}

type AddIssue = (name: SettingName, rule: string, value?: string) => void;

/** A node shows one proof of who it is to NATS, and a certificate comes with its key. */
function loginIssues(given: Given, add: AddIssue): void {
  const logins = (["natsUser", "natsToken", "natsNkeySeedFile", "natsCredsFile"] as const).filter(
    (name) => given[name] !== undefined,
  );
  const [first, ...others] = logins;
  for (const other of others) if (first !== undefined) add(other, `can't be combined with ${settings[first].variable}`);
  for (const [one, another] of [
    ["natsPassword", "natsUser"],
    ["natsUser", "natsPassword"],
    ["natsTlsCert", "natsTlsKey"],
    ["natsTlsKey", "natsTlsCert"],
    ["httpTlsCert", "httpTlsKey"],
    ["httpTlsKey", "httpTlsCert"],
  ] as const)
    if (given[one] !== undefined && given[another] === undefined) add(one, `needs ${settings[another].variable}`);
}

/** Rules that tie several settings together. */
function relationIssues(given: Given, sourceOf: (name: SettingName) => string): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const add: AddIssue = (name, rule, value) => {
    issues.push({ source: sourceOf(name), rule, ...(value === undefined ? {} : { value }) });
  };
  if (given.keys === undefined && given.httpHost !== undefined && given.httpHost !== "127.0.0.1")
    add(
      "httpHost",
      "must be 127.0.0.1: in open mode any caller is believed, so only this machine may call",
      given.httpHost,
    );
  loginIssues(given, add);
  if (given.storage === "memory" && given.stateDirectory !== undefined)
    add(
      "stateDirectory",
      `can't be combined with ${settings.storage.variable}=memory, which loses the store on a restart`,
    );
  if (
    given.monitorUrls !== undefined &&
    given.natsServers !== undefined &&
    given.monitorUrls.length > given.natsServers.length
  )
    add("monitorUrls", `names more servers than ${settings.natsServers.variable}`);
  return issues;
}

interface Told {
  readonly environment: { readonly [variable: string]: string | undefined };
  readonly flags: { readonly [flag: string]: string | undefined };
}

/** @throws ConfigError that lists everything that is wrong with the settings of these names. */
function readGiven(names: readonly SettingName[], { environment, flags }: Told): Given {
  const issues: ConfigIssue[] = [];
  const values: { [name: string]: unknown } = {};
  const sourceOf = (name: SettingName): string =>
    flags[describe(name).flag] === undefined ? describe(name).variable : `--${describe(name).flag}`;
  for (const name of names) {
    const one = describe(name);
    const fromEnvironment = environment[one.variable];
    // An empty variable is an unset one: that is how compose files and shells unset.
    const text = flags[one.flag] ?? (fromEnvironment === "" ? undefined : fromEnvironment) ?? one.initial;
    if (text === undefined) continue;
    const parsed = one.shape.safeParse(text);
    const rule = parsed.success
      ? one.file === undefined
        ? undefined
        : brokenFileRule(text, one.file)
      : (parsed.error.issues[0]?.message ?? "is not valid");
    if (rule !== undefined)
      issues.push({
        source: sourceOf(name),
        ...(one.secret === true ? {} : { value: JSON.stringify(text.slice(0, 200)) }),
        rule,
      });
    if (parsed.success) values[name] = parsed.data;
  }
  const given = values as Given;
  issues.push(...relationIssues(given, sourceOf));
  if (issues.length > 0) throw new ConfigError(issues);
  return given;
}

/**
 * Reads the configuration.
 *
 * @throws ConfigError that lists everything that is wrong.
 */
export function readConfig(environment: Told["environment"], flags: Told["flags"] = {}): Config {
  const given = readGiven(settingNames, { environment, flags });
  return {
    nodeId: `${hostname()
      .replaceAll(/[^A-Za-z0-9._-]/g, "-")
      .slice(0, 50)}-${given.httpPort}`,
    ...given,
  } as Config;
}

/**
 * Reads what a process that is no node is told about NATS: the same variables and flags.
 *
 * @throws ConfigError that lists everything that is wrong.
 */
export const readNatsClient = (environment: Told["environment"], flags: Told["flags"]): NatsClientConfig =>
  readGiven(natsClientSettings, { environment, flags });

/** Reads how a store is named and spread. @throws ConfigError that lists everything that is wrong. */
export const readStoreLayout = (
  environment: Told["environment"],
  flags: Told["flags"],
): Pick<Config, "epoch" | "shards"> => readGiven(["epoch", "shards"], { environment, flags }) as Config;

/** The flags that {@link readNatsClient} understands. */
export const natsClientFlags: readonly string[] = natsClientSettings.map((name) => settings[name].flag);

/** Variables that begin like ours and are none: most likely a typing error, which must be told and must not stop a node. */
export const unknownVariables = (environment: {
  readonly [variable: string]: string | undefined;
}): readonly string[] => {
  const known = new Set(settingNames.map((name) => describe(name).variable));
  return Object.keys(environment)
    .filter((variable) => variable.startsWith("MANDATE_") && !known.has(variable))
    .toSorted();
};

/** The settings as a table for people: variable, flag, initial value, meaning. */
export const settingRows = (): readonly (readonly [string, string, string, string])[] =>
  settingNames.map((name) => {
    const { variable, flag, initial, doc } = describe(name);
    return [variable, `--${flag}`, initial ?? "", doc];
  });
