import { hostname } from "node:os";
import type { z } from "zod";
import { settings, type Setting } from "./settings.ts";

type Settings = typeof settings;
export type SettingName = keyof Settings;
type ValueOf<One> = One extends { readonly shape: z.ZodType<infer Value, string> } ? Value : never;
type Given = { readonly [Name in SettingName]?: ValueOf<Settings[Name]> };

/** Settings that have no initial value. */
type Optional = "natsUser" | "natsPassword" | "natsToken" | "stateDirectory" | "history";

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

/** Rules that tie several settings together. */
function relationIssues(given: Given, sourceOf: (name: SettingName) => string): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const add = (name: SettingName, rule: string, value?: string): void => {
    issues.push({ source: sourceOf(name), rule, ...(value === undefined ? {} : { value }) });
  };
  if (given.httpHost !== undefined && given.httpHost !== "127.0.0.1")
    add(
      "httpHost",
      "must be 127.0.0.1: in open mode any caller is believed, so only this machine may call",
      given.httpHost,
    );
  if (given.natsPassword !== undefined && given.natsUser === undefined)
    add("natsPassword", `needs ${settings.natsUser.variable}`);
  if (given.natsUser !== undefined && given.natsPassword === undefined)
    add("natsUser", `needs ${settings.natsPassword.variable}`);
  if (given.natsToken !== undefined && given.natsUser !== undefined)
    add("natsToken", `can't be combined with ${settings.natsUser.variable}`);
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

/**
 * Reads the configuration.
 *
 * @throws ConfigError that lists everything that is wrong.
 */
export function readConfig(
  environment: { readonly [variable: string]: string | undefined },
  flags: { readonly [flag: string]: string | undefined } = {},
): Config {
  const issues: ConfigIssue[] = [];
  const values: { [name: string]: unknown } = {};
  const sourceOf = (name: SettingName): string =>
    flags[describe(name).flag] === undefined ? describe(name).variable : `--${describe(name).flag}`;
  for (const name of settingNames) {
    const one = describe(name);
    const fromEnvironment = environment[one.variable];
    // An empty variable is an unset one: that is how compose files and shells unset.
    const text = flags[one.flag] ?? (fromEnvironment === "" ? undefined : fromEnvironment) ?? one.initial;
    if (text === undefined) continue;
    const parsed = one.shape.safeParse(text);
    if (parsed.success) values[name] = parsed.data;
    else
      issues.push({
        source: sourceOf(name),
        ...(one.secret === true ? {} : { value: JSON.stringify(text.slice(0, 200)) }),
        rule: parsed.error.issues[0]?.message ?? "is not valid",
      });
  }
  const given = values as Given;
  issues.push(...relationIssues(given, sourceOf));
  if (issues.length > 0) throw new ConfigError(issues);
  return {
    nodeId: `${hostname()
      .replaceAll(/[^A-Za-z0-9._-]/g, "-")
      .slice(0, 50)}-${given.httpPort}`,
    ...given,
  } as Config;
}

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
