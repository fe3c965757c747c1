/** `create`, `ls`, `rm`. */
import type { Command } from "commander";
import type { Isolation } from "../../schemas/sandboxes.ts";
import { UsageError } from "../failures.ts";
import { findSandbox, warnOfNamesakes } from "../names.ts";
import { ago } from "../output.ts";
import { type CommonOptions, command, given, type RemoveOptions, remove, taskOf } from "../task.ts";
import { isolation, memory, variable, whole } from "../values.ts";

interface CreateOptions extends CommonOptions {
  readonly name?: string;
  readonly cpus?: number;
  readonly memory?: number;
  readonly storage?: number;
  readonly env?: Record<string, string>;
  readonly network?: string;
  readonly isolation?: Isolation;
  readonly wait: boolean;
}

async function create(image: string | undefined, options: CreateOptions): Promise<void> {
  const { name, cpus, memory, storage, env, network, isolation, wait } = options;
  if (network !== undefined && network !== "none" && network !== "outbound") throw new UsageError("--network takes none or outbound");
  const { client, out } = await taskOf(options);
  const made = await client.sandboxes.create({
    ...given({ image, name, env_vars: env, isolation }),
    resources: given({ cpus, memory, storage }),
    ...(network ? { network: { access: network } } : {}),
    wait_for_ready: wait,
  });
  out.show(made.info, () => out.line(made.id));
  if (name !== undefined) await warnOfNamesakes(client, made);
}

async function list(options: CommonOptions & { quiet?: true }): Promise<void> {
  const { client, out } = await taskOf(options);
  const data = (await client.sandboxes.list().all()).map(({ info }) => info);
  out.list(data, () => {
    if (options.quiet) for (const { id } of data) out.line(id);
    else
      out.table(
        ["ID", "NAME", "STATUS", "IMAGE", "CPUS", "MEMORY", "STORAGE", "NETWORK", "CREATED"],
        data.map((one) => [
          one.id,
          one.name,
          one.status,
          one.image,
          one.cpu,
          `${one.memory} MiB`,
          `${one.storage} GB`,
          one.network.access,
          ago(one.created_at),
        ]),
      );
  });
}

async function removeSandboxes(names: string[], options: RemoveOptions & { snapshot?: string | true }): Promise<void> {
  const { snapshot } = options;
  if (options.all && snapshot) throw new UsageError("--all takes no names and no --snapshot");
  const kept = snapshot ? { create_snapshot: true, ...(snapshot === true ? {} : { snapshot_name: snapshot }) } : {};
  await remove(names, options, {
    kind: "sandboxes",
    question: "Delete all sandboxes of the account, with their files?",
    all: (client) => client.sandboxes.deleteAll(),
    one: async (client, name) => {
      const answer = await (await findSandbox(client, name)).delete(kept);
      return { id: answer.id, answer };
    },
  });
}

export function sandboxCommands(): Command[] {
  return [
    command("create [IMAGE]", "create a sandbox and print its id")
      .option("-n, --name <name>", "its name, which need not be unique (default: generated)")
      .option("--cpus <n>", "CPUs, 1 to 32", whole("--cpus", 1))
      .option("-m, --memory <size>", "memory in MiB, or with a unit such as 2g", memory)
      .option("--storage <gb>", "storage in GB, 1 to 1000", whole("--storage", 1))
      .option("-e, --env <name=value>", "an environment variable; may be repeated", variable)
      .option("--network <access>", "outbound (the default) or none")
      .option("--isolation <kind>", "standard (the default) or strong: under gVisor", isolation)
      .option("--no-wait", "do not wait until it is running")
      .action(create),
    command("ls", "list sandboxes").alias("ps").option("-q, --quiet", "only ids").action(list),
    command("rm [SANDBOX...]", "delete sandboxes with their files")
      .option("-f, --force", "with --all: do not ask; with names: ignore sandboxes that do not exist")
      .option("-a, --all", "all sandboxes of the account, after asking")
      .option("--snapshot [name]", "take a last snapshot of each")
      .action(removeSandboxes),
  ];
}
