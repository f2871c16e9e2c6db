import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { compiledProgram, profileFlags } from "./compiled.ts";
import type { GeneratorSetting, JobAnswer, JobArguments, JobName, Order, Reply } from "./generator-process.ts";

/** A load generator in a process of its own. One job at a time. */
export class Generator {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** The id of its process. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** `profileTo`: a folder for a CPU profile of the generator. */
  static async start(setting: GeneratorSetting, profileTo?: string): Promise<Generator> {
    const child = fork(compiledProgram("bench/generator-process"), {
      serialization: "advanced",
      execArgv: [...profileFlags(profileTo)],
    });
    const generator = new Generator(child);
    await generator.#order({ setting });
    return generator;
  }

  /** Has a job done; fails as the job fails. */
  async run<Name extends JobName>(name: Name, value: JobArguments<Name>): Promise<JobAnswer<Name>> {
    return (await this.#order({ name, arguments: value })) as JobAnswer<Name>;
  }

  /** Ends the process. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }

  #order(order: Order): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onExit = (): void => settle(() => reject(new Error("the load generator ended")));
      const onMessage = (reply: Reply): void =>
        settle(() => ("failure" in reply ? reject(new Error(reply.failure)) : resolve(reply.answer)));
      const settle = (how: () => void): void => {
        this.#child.off("exit", onExit).off("message", onMessage);
        how();
      };
      this.#child.on("exit", onExit).on("message", onMessage);
      this.#child.send(order);
    });
  }
}
