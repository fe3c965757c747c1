/** Sandboxes of a virtual machine, and the control groups in which its kernel limits them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { until } from "../helpers/until.ts";
import type { Client } from "../host/client.ts";
import type { VirtualMachine } from "./machine.ts";

/** The machine is slow. */
export const patienceMs = 300_000;
export const memoryMiB = 128;
export const processesMax = 64;
const mib = 1024 ** 2;

interface Result {
  readonly exit_code: number;
  readonly stdout: string;
  readonly error?: string;
}

/** A sandbox, and the folder of its group. */
export interface Limited {
  readonly id: string;
  readonly group: string;
}

/** What the kernel is to be asked to enforce. */
export const expected = (memory: number, cpus: number, processes = processesMax): string[] =>
  [memory * mib, 0, Math.round(memory * 0.98) * mib, `${cpus * 100_000} 100000`, processes].map(String);

export class LimitedSandboxes {
  readonly #machine: VirtualMachine;
  readonly #client: Client;
  readonly #log: () => Promise<string>;
  #marks = 1_000_000;

  /** @param log what the worker said last */
  constructor(machine: VirtualMachine, client: Client, log: () => Promise<string>) {
    this.#machine = machine;
    this.#client = client;
    this.#log = log;
  }

  execute(id: string, command: string, timeout = 120): Promise<Result> {
    return this.#client.call<Result>(`/v1/sandboxes/${id}/execute`, { command, timeout }) as Promise<Result>;
  }

  async expectUsable(id: string): Promise<void> {
    assert.equal(await this.#client.output(id, "echo usable"), "usable\n");
  }

  async create(options: { resources?: object; isolation?: string } = {}): Promise<string> {
    // It may take longer than a call waits for a worker.
    const body = { image: "default", wait_for_ready: false, ...options, resources: { memory: memoryMiB, storage: 1, ...options.resources } };
    const { id, error } = await this.#client.call<{ id: string }>("/v1/sandboxes/create", body);
    assert.equal(error, undefined, JSON.stringify(error));
    const shown = (): Promise<{ status: string }> => this.#client.call<{ status: string }>(`/v1/sandboxes/${id}`);
    const status = await until("it is made", () => shown().then((now) => now.status !== "creating" && now.status), patienceMs);
    assert.equal(status, "running", await this.#log());
    return id;
  }

  async make(resources: object = {}): Promise<Limited> {
    const id = await this.create({ resources });
    return { id, group: await this.groupOf(id) };
  }

  /** Finds the group of a sandbox by a process in it. */
  async groupOf(id: string): Promise<string> {
    const mark = String(this.#marks++);
    await this.#client.output(id, `sleep ${mark} > /dev/null 2>&1 &`);
    const path = await this.#machine.shell(`sed -n 's/^0:://p' "/proc/$(pgrep -xf 'sleep ${mark}')/cgroup"`);
    await this.#client.output(id, `pkill -xf 'sleep ${mark}'`);
    // Where Podman has made it, the runtime puts processes into groups below.
    const group = /^.*\/libpod-\w+\.scope/.exec(path)?.[0] ?? path;
    assert.match(group, /^\/./);
    return join("/sys/fs/cgroup", group);
  }

  async read(group: string, ...files: string[]): Promise<string[]> {
    return (await this.#machine.shell(`cd "${group}" && for file in ${files.join(" ")}; do cat $file; done`)).split("\n");
  }

  /** A value in a file of lines "NAME VALUE". */
  async counted(group: string, file: string, name: string): Promise<number> {
    return Number(await this.#machine.run("sed", "-n", `s/^${name} //p`, join(group, file)));
  }

  /** What the kernel was asked to enforce. */
  asked({ group }: Limited): Promise<string[]> {
    return this.read(group, "memory.max", "memory.swap.max", "memory.high", "cpu.max", "pids.max");
  }
}
