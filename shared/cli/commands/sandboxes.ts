/** `create`, `ls`, `rm`. */
import type { Command } from "commander";
import { NotFoundError } from "../../client/errors.ts";
import { confirm } from "../confirm.ts";
import { UsageError } from "../failures.ts";
import { findSandbox, warnOfNamesakes } from "../names.ts";
import { ago } from "../output.ts";
import { type CommonOptions, command, forEach, taskOf } from "../task.ts";
import { memory, variable, whole } from "../values.ts";

interface CreateOptions extends CommonOptions {
  readonly name?: string;
  readonly cpus?: number;
  readonly memory?: number;
  readonly storage?: number;
  readonly env?: Record<string, string>;
  readonly network?: string;
  readonly wait: boolean;
}

async function create(image: string | undefined, options: CreateOptions): Promise<void> {
  const { name, cpus, memory, storage, env, network, wait } = options;
  if (network !== undefined && network !== "none" && network !== "outbound") throw new UsageError("--network takes none or outbound");
  const { client, out } = await taskOf(options);
  const made = await client.sandboxes.create({
    ...(image === undefined ? {} : { image }),
    ...(name === undefined ? {} : { name }),
    resources: resources({ cpus, memory, storage }),
    ...(env ? { env_vars: env } : {}),
    ...(network ? { network: { access: network } } : {}),
    wait_for_ready: wait,
  });
  out.show(made.info, () => out.line(made.id));
  if (name !== undefined) await warnOfNamesakes(client, made);
}

/** The resources that were given. */
export function resources(given: Record<"cpus" | "memory", number | undefined> & { storage?: number | undefined }): Record<string, number> {
  return Object.fromEntries(Object.entries(given).filter((pair): pair is [string, number] => pair[1] !== undefined));
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

interface RemoveOptions extends CommonOptions {
  readonly all?: true;
  readonly force?: true;
  readonly snapshot?: string | true;
}

async function remove(names: string[], options: RemoveOptions): Promise<void> {
  const { all, force, snapshot } = options;
  if (all ? names.length > 0 || snapshot : names.length === 0)
    throw new UsageError(all ? "--all takes no names and no --snapshot" : "which sandboxes? Name them, or give --all");
  const { client, out } = await taskOf(options);
  if (all) {
    if (!force) await confirm("Delete all sandboxes of the account, with their files?", "--force");
    const answer = await client.sandboxes.deleteAll();
    return out.show(answer, () => answer.deleted_ids.forEach((id) => out.line(id)));
  }
  const kept = snapshot ? { create_snapshot: true, ...(snapshot === true ? {} : { snapshot_name: snapshot }) } : {};
  await forEach(names, async (name) => {
    try {
      const answer = await (await findSandbox(client, name)).delete(kept);
      out.show(answer, () => out.line(answer.id));
    } catch (error) {
      if (!(force && (error instanceof NotFoundError || isUnknown(error)))) throw error;
    }
  });
}

/** Whether no sandbox has this name, which `rm --force` ignores. */
const isUnknown = (error: unknown): boolean => error instanceof Error && error.message.startsWith("there is no ");

export function sandboxCommands(): Command[] {
  return [
    command("create [IMAGE]", "create a sandbox and print its id")
      .option("-n, --name <name>", "its name, which need not be unique (default: generated)")
      .option("--cpus <n>", "CPUs, 1 to 32", whole("--cpus", 1))
      .option("-m, --memory <size>", "memory in MiB, or with a unit such as 2g", memory)
      .option("--storage <gb>", "storage in GB, 1 to 1000", whole("--storage", 1))
      .option("-e, --env <name=value>", "an environment variable; may be repeated", variable)
      .option("--network <access>", "outbound (the default) or none")
      .option("--no-wait", "do not wait until it is running")
      .action(create),
    command("ls", "list sandboxes").alias("ps").option("-q, --quiet", "only ids").action(list),
    command("rm [SANDBOX...]", "delete sandboxes with their files")
      .option("-f, --force", "with --all: do not ask; with names: ignore sandboxes that do not exist")
      .option("-a, --all", "all sandboxes of the account, after asking")
      .option("--snapshot [name]", "take a last snapshot of each")
      .action(remove),
  ];
}
