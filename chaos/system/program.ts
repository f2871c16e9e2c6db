import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ProcessExit } from "../../cluster/guarded-process.ts";
import { GuardedProcess } from "../../cluster/guarded-process.ts";
import type { Unit } from "./kept.ts";

export interface ProgramOptions {
  readonly name: string;
  /** Its own folder, for its log. */
  readonly directory: string;
  /** The TypeScript file to run. */
  readonly file: string;
  /** Handed to it as JSON in `CHAOS_SETTING`. */
  readonly setting: object;
  readonly env?: { readonly [name: string]: string };
}

const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

/** Reads what a program was started with. */
export const readSetting = (): unknown => JSON.parse(process.env["CHAOS_SETTING"] ?? "{}");

/** A program of the harness itself (a worker, the traffic) as a process of its own. */
export class Program implements Unit {
  readonly name: string;
  readonly #options: ProgramOptions;
  #process: GuardedProcess | undefined;

  constructor(options: ProgramOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get running(): boolean {
    return this.#process?.running ?? false;
  }

  get exited(): Promise<ProcessExit> | undefined {
    return this.#process?.exited;
  }

  get logPath(): string {
    return join(this.#options.directory, `${this.name}.log`);
  }

  async start(): Promise<void> {
    const { name, directory, file, setting, env } = this.#options;
    this.#process = await GuardedProcess.start({
      name,
      directory,
      program: process.execPath,
      arguments: ["--import", loader, file],
      env: { ...env, CHAOS_SETTING: JSON.stringify(setting) },
    });
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await this.#process?.kill(signal);
  }

  async pause(): Promise<void> {
    await this.#process?.pause();
  }

  resume(): void {
    this.#process?.resume();
  }
}
