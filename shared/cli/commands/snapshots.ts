/** `snapshot`, `clone`, `restore`, `snapshots`. */
import type { Command } from "commander";
import { findSandbox, findSnapshot, warnOfNamesakes } from "../names.ts";
import { ago, bytesText } from "../output.ts";
import { type CommonOptions, command, given, type RemoveOptions, remove, taskOf } from "../task.ts";
import { memory, variable, whole } from "../values.ts";

interface MakeOptions extends CommonOptions {
  readonly name?: string;
  readonly snapshotName?: string;
  readonly cpus?: number;
  readonly memory?: number;
  readonly storage?: number;
  readonly image?: string;
  readonly env?: Record<string, string>;
  readonly wait: boolean;
}

async function take(name: string, options: CommonOptions & { name?: string; quick?: true }): Promise<void> {
  const { client, out } = await taskOf(options);
  const { info } = await (await findSandbox(client, name)).snapshot(given({ name: options.name || undefined, quick: options.quick }));
  out.show(info, () => out.line(info.id));
}

async function clone(name: string, options: MakeOptions): Promise<void> {
  const { client, out } = await taskOf(options);
  const { snapshotName, cpus, memory } = options;
  const wanted = { ...common(options), ...given({ snapshot_name: snapshotName || undefined }), resources: given({ cpus, memory }) };
  const { sandbox, snapshot } = await (await findSandbox(client, name)).clone(wanted);
  out.show({ sandbox: sandbox.info, snapshot: snapshot.info }, () => out.line(sandbox.id));
  if (options.name) await warnOfNamesakes(client, sandbox);
}

async function restore(name: string, options: MakeOptions): Promise<void> {
  const { client, out } = await taskOf(options);
  const { env, cpus, memory, storage } = options;
  const wanted = { ...common(options), ...given({ env_vars: env }), resources: given({ cpus, memory, storage }) };
  const made = await (await findSnapshot(client, name)).restore(wanted);
  out.show(made.info, () => out.line(made.id));
  if (options.name) await warnOfNamesakes(client, made);
}

const common = ({ name, image, wait }: MakeOptions) => ({ ...given({ name: name || undefined, image: image || undefined }), wait_for_ready: wait });

async function list(options: CommonOptions & { quiet?: true }): Promise<void> {
  const { client, out } = await taskOf(options);
  const data = (await client.snapshots.list().all()).map(({ info }) => info);
  out.list(data, () => {
    if (options.quiet) for (const { id } of data) out.line(id);
    else
      out.table(
        ["ID", "NAME", "SOURCE", "CONSISTENCY", "SIZE", "EXCLUSIVE", "SHARED", "CREATED"],
        data.map((one) => {
          const sizes = [one.size_bytes, one.exclusive_bytes, one.shared_bytes].map((bytes) => (bytes === null ? null : bytesText(bytes)));
          return [one.id, one.name, one.source_sandbox_name, one.consistency, ...sizes, ago(one.created_at)];
        }),
      );
  });
}

const removeSnapshots = (names: string[], options: RemoveOptions): Promise<void> =>
  remove(names, options, {
    kind: "snapshots",
    question: "Delete all snapshots of the account?",
    all: (client) => client.snapshots.deleteAll(),
    one: async (client, name) => {
      const snapshot = await findSnapshot(client, name);
      return { id: snapshot.id, answer: await snapshot.delete() };
    },
  });

const sized = (made: Command): Command =>
  made
    .option("-n, --name <name>", "the name of the new sandbox (default: generated)")
    .option("--cpus <n>", "CPUs, 1 to 32 (default: as it was)", whole("--cpus", 1))
    .option("-m, --memory <size>", "memory in MiB, or with a unit such as 2g (default: as it was)", memory)
    .option("--image <image>", "put the changed files on top of this image instead")
    .option("--no-wait", "do not wait until it is running");

export function snapshotCommands(): Command[] {
  return [
    command("snapshot SANDBOX", "take a snapshot of a sandbox and print its id")
      .option("-n, --name <name>", "its name (default: generated)")
      .option("--quick", "do not freeze the sandbox meanwhile (crash-consistent)")
      .action(take),
    sized(command("clone SANDBOX", "create a copy of a sandbox and print its id"))
      .option("--snapshot-name <name>", "the name of the intermediate snapshot")
      .action(clone),
    sized(command("restore SNAPSHOT", "create a sandbox from a snapshot and print its id"))
      .option("--storage <gb>", "storage in GB (default: as it was)", whole("--storage", 1))
      .option("-e, --env <name=value>", "an environment variable; may be repeated", variable)
      .action(restore),
    command("snapshots", "list snapshots; `snapshots rm` deletes them")
      .option("-q, --quiet", "only ids")
      .action(list)
      .addCommand(
        command("rm [SNAPSHOT...]", "delete snapshots; sandboxes created from them are kept")
          .option("-f, --force", "with --all: do not ask; with names: ignore snapshots that do not exist")
          .option("-a, --all", "all snapshots of the account, after asking")
          .action((names: string[], options: CommonOptions, self: Command) => removeSnapshots(names, { ...self.parent?.opts(), ...options })),
      ),
  ];
}
