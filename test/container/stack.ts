import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { DockerComposeEnvironment, Wait, type StartedDockerComposeEnvironment } from "testcontainers";
import { freePorts } from "../../cluster/free-ports.ts";
import { poll } from "../../cluster/poll.ts";
import { projectRoot } from "../../cluster/project-root.ts";
import { docker, type ComposeProgram } from "./docker.ts";

const execute = promisify(execFile);
const PREFERRED_PORT = 28_700;
/** Where docker-compose.yml has the nodes listen. */
const NODE_PORTS = [7701, 7702, 7703];
const BUILD_TIMEOUT_MS = 120_000;

export const authorities = ["authority-1", "authority-2", "authority-3"] as const;
export const natsServers = ["nats-1", "nats-2", "nats-3"] as const;
export const workers = ["worker-1", "worker-2"] as const;
export type Service = (typeof authorities | typeof natsServers | typeof workers)[number] | "haproxy" | "namespace";

/** How a container is ended: as compose does it, or at once. */
export type Ending = "stop" | "kill";

/** All of docker-compose.yml, with an image made of this checkout; nothing is left of it after {@link ComposeStack.down}. */
export class ComposeStack {
  readonly image: string;
  readonly url: string;
  readonly #project: string;
  readonly #environment: StartedDockerComposeEnvironment;
  /** Containers as they were found first; they are never made anew. */
  readonly #ids = new Map<Service, string>();

  private constructor(of: {
    readonly image: string;
    readonly project: string;
    readonly url: string;
    readonly environment: StartedDockerComposeEnvironment;
  }) {
    this.image = of.image;
    this.url = of.url;
    this.#project = of.project;
    this.#environment = of.environment;
  }

  /** Builds the image and starts every container; that they serve is for the caller to wait for. */
  static async up(compose: ComposeProgram): Promise<ComposeStack> {
    const root = projectRoot();
    const name = `mandate-test-${randomBytes(4).toString("hex")}`;
    const image = `${name}:latest`;
    await execute(process.execPath, ["deploy/prebuilt.mjs"], { cwd: root, timeout: BUILD_TIMEOUT_MS });
    await docker(["build", "--quiet", "--tag", image, "--target", "prebuilt", root], BUILD_TIMEOUT_MS);
    try {
      const [port = PREFERRED_PORT] = await freePorts([PREFERRED_PORT]);
      const environment = await new DockerComposeEnvironment(root, "docker-compose.yml")
        .withProjectName(name)
        .withEnvironment({
          MANDATE_IMAGE: image,
          MANDATE_BUILD_TARGET: "prebuilt",
          MANDATE_PUBLISHED_PORT: String(port),
        })
        .withClientOptions(compose === "standalone" ? { executable: { standalone: true } } : {})
        .withDefaultWaitStrategy(Wait.forAll([]))
        .up();
      return new ComposeStack({ image, project: name, url: `http://127.0.0.1:${port}`, environment });
    } catch (thrown) {
      await docker(["image", "rm", "--force", image]);
      throw thrown;
    }
  }

  async down(): Promise<void> {
    await this.#environment.down({ removeVolumes: true, timeout: 2_000 });
    await docker(["image", "rm", "--force", this.image]);
  }

  /** Waits until the address in front answers that a node is ready. */
  async waitReady(timeoutMs: number): Promise<boolean> {
    const ready = await poll(
      async () => {
        const answer = await fetch(`${this.url}/readyz`).catch(() => undefined);
        await answer?.arrayBuffer();
        return answer?.ok === true ? true : undefined;
      },
      { timeoutMs, intervalMs: 250 },
    );
    return ready === true;
  }

  /**
   * Waits until every node is ready, and the product's own examination, carried out in a node's container, finds nothing
   * to mend: all servers connected, all copies up to date.
   */
  async waitWhole(timeoutMs: number): Promise<boolean> {
    const whole = await poll(async () => ((await this.#allReady()) && (await this.#allWell()) ? true : undefined), {
      timeoutMs,
      intervalMs: 500,
    });
    return whole === true;
  }

  /** Asks each node at its own port, from within the namespace that they share. */
  async #allReady(): Promise<boolean> {
    const program = `Promise.all([${NODE_PORTS.join()}].map((port) => fetch("http://127.0.0.1:" + port + "/readyz")))
      .then((answers) => process.exit(answers.every(({ ok }) => ok) ? 0 : 1), () => process.exit(1))`;
    return docker(["exec", await this.#idOf("namespace"), "node", "-e", program]).then(
      () => true,
      () => false,
    );
  }

  async #allWell(): Promise<boolean> {
    const examine = ["exec", await this.#idOf("authority-3"), "node", "/app/dist/src/main.js", "doctor", "--json"];
    // It ends with 1 while something is to be mended.
    const report = await docker(examine).catch(() => `{"checks":[]}`);
    const { checks } = JSON.parse(report) as {
      readonly checks: readonly { readonly name: string; readonly verdict: string }[];
    };
    // Nobody shows credentials in open mode, so there is nothing to say of access.
    return checks.length > 0 && checks.every(({ name, verdict }) => verdict === (name === "access" ? "skipped" : "ok"));
  }

  /** Ends containers, all at the same time. */
  async end(services: readonly Service[], how: Ending): Promise<void> {
    await docker([how, ...(await this.#idsOf(services))]);
  }

  async start(services: readonly Service[]): Promise<void> {
    await docker(["start", ...(await this.#idsOf(services))]);
  }

  /** Something that `docker inspect` tells of a service's container, named by a template. */
  async inspect(service: Service, template: string): Promise<string> {
    return docker(["inspect", "--format", template, await this.#idOf(service)]);
  }

  /** The last lines that every container wrote: what to look at when the deployment does not come back. */
  async lastWords(): Promise<string> {
    const services = [...natsServers, ...authorities, ...workers, "haproxy"] as const;
    const words = services.map(async (service) => {
      const { stdout, stderr } = await execute("docker", ["logs", "--tail", "8", await this.#idOf(service)]);
      return `--- ${service}\n${stdout}${stderr}`;
    });
    return (await Promise.all(words)).join("");
  }

  async #idsOf(services: readonly Service[]): Promise<string[]> {
    return Promise.all(services.map((service) => this.#idOf(service)));
  }

  async #idOf(service: Service): Promise<string> {
    const known = this.#ids.get(service);
    if (known !== undefined) return known;
    const filter = (label: string, value: string): string[] => [
      "--filter",
      `label=com.docker.compose.${label}=${value}`,
    ];
    const id = await docker([
      "ps",
      "--all",
      "--quiet",
      ...filter("project", this.#project),
      ...filter("service", service),
    ]);
    this.#ids.set(service, id);
    return id;
  }
}
