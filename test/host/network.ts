/** A network of the test's own for its machines, whose cables can be pulled. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { until } from "../helpers/until.ts";

const prefix = "10.77.0";
const bridge = "switch";

/** Where a machine is on a network. */
export interface Place {
  readonly network: Network;
  /** From 1 to 253. */
  readonly number: number;
}

/** A bridge in a network namespace, which ends with the process that holds it. */
export class Network implements AsyncDisposable {
  readonly #holder: ChildProcess;

  private constructor(holder: ChildProcess) {
    this.#holder = holder;
  }

  static async start(): Promise<Network> {
    const holder = spawn("unshare", ["--net", "sh", "-c", "echo here; exec sleep infinity"], {
      env: { PATH: searchPath },
      stdio: ["ignore", "pipe", "inherit"],
    });
    if (holder.stdout) await once(holder.stdout, "data");
    const network = new Network(holder);
    await network.run(
      "sh",
      "-euc",
      `ip link set lo up; ip link add ${bridge} type bridge; ip addr add ${prefix}.254/24 dev ${bridge}; ip link set ${bridge} up`,
    );
    return network;
  }

  /** The address of the machine with this number. */
  static address = (number: number): string => `${prefix}.${number}`;

  /** Runs a command on it, as a client on a machine beside the others would. */
  run(...argv: string[]): Promise<string> {
    return this.runUntil(new AbortController().signal, ...argv);
  }

  /** The same for a command that is ended when the signal is aborted. */
  runUntil(signal: AbortSignal, ...argv: string[]): Promise<string> {
    return run(["nsenter", "--target", String(this.#holder.pid), "--net", ...argv], { cwd: "/", signal });
  }

  /** Gives the machine with this process 1 a cable. */
  async plugIn(init: number, number: number): Promise<void> {
    const inside = `ip link set far${number} name eth0; ip addr add ${Network.address(number)}/24 dev eth0; ip link set eth0 up; ip route add default via ${prefix}.254`;
    await until("the former cable is gone", async () => !(await this.run("ip", "-o", "link")).includes(` near${number}@`));
    await this.run("ip", "link", "add", `near${number}`, "type", "veth", "peer", "name", `far${number}`, "netns", String(init));
    await this.run("ip", "link", "set", `near${number}`, "master", bridge, "up");
    await run(["nsenter", "--target", String(init), "--net", "sh", "-euc", inside], { cwd: "/" });
  }

  /** Pulls a machine's cable, or puts it back. */
  async cable(number: number, state: "up" | "down"): Promise<void> {
    await this.run("ip", "link", "set", `near${number}`, state);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#holder, "exit");
    this.#holder.kill("SIGKILL");
    await ended;
  }
}
