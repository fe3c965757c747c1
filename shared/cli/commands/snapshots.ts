/** `snapshot`, `clone`, `fork`, `restore`, `snapshots`. */
import type { Command } from "commander";
import type { Forked } from "../../client/index.ts";
import type { SandboxInfo, SnapshotInfo } from "../../client/types.ts";
import type { MemoryWish } from "../../memory.ts";
import { Told, textOf } from "../failures.ts";
import { findSandbox, findSnapshot, warnOfNamesakes } from "../names.ts";
import { ago, bytesText, say } from "../output.ts";
import { type CommonOptions, command, given, type RemoveOptions, remove, taskOf } from "../task.ts";
import { memory, memoryWish, variable, whole } from "../values.ts";

interface MakeOptions extends CommonOptions {
  readonly name?: string;
  readonly snapshotName?: string;
  readonly cpus?: number;
  readonly memory?: number;
  readonly storage?: number;
  readonly image?: string;
  readonly env?: Record<string, string>;
  readonly restoreMemory?: MemoryWish;
  readonly wait: boolean;
}

async function take(name: string, options: CommonOptions & { name?: string; quick?: true; memory?: MemoryWish }): Promise<void> {
  const { client, out } = await taskOf(options);
  const { quick, memory } = options;
  const { info } = await (await findSandbox(client, name)).snapshot(given({ name: options.name || undefined, quick, memory }));
  out.show(info, () => out.line(info.id));
  tellWithout(info, memory);
}

/** Only whoever has asked for memory is told why it is missing: where no worker can take it, that is always so. */
function tellWithout({ memory_reason }: Pick<SandboxInfo | SnapshotInfo, "memory_reason">, wish: MemoryWish | undefined): void {
  if (wish && memory_reason !== null) say(`sandgate: only the files: ${memory_reason}`);
}

async function clone(name: string, options: MakeOptions): Promise<void> {
  const { client, out } = await taskOf(options);
  const { snapshotName, cpus, memory } = options;
  const wanted = { ...common(options), ...given({ snapshot_name: snapshotName || undefined }), resources: given({ cpus, memory }) };
  const { sandbox, snapshot } = await (await findSandbox(client, name)).clone(wanted);
  out.show({ sandbox: sandbox.info, snapshot: snapshot.info }, () => out.line(sandbox.id));
  tellWithout(sandbox.info, options.restoreMemory);
  if (options.name) await warnOfNamesakes(client, sandbox);
}

async function fork(name: string, options: MakeOptions & { count: number }): Promise<void> {
  const { client, out } = await taskOf(options);
  const { cpus, memory, count } = options;
  const { image: _, ...settings } = common(options);
  const copies = await (await findSandbox(client, name)).fork({ count, ...settings, resources: given({ cpus, memory }) });
  out.show({ data: copies.map(answered) }, () => copies.forEach(({ sandbox }) => sandbox && out.line(sandbox.id)));
  const [first] = copies.flatMap(({ sandbox }) => sandbox ?? []);
  if (first) tellWithout(first.info, options.restoreMemory);
  const failed = copies.flatMap(({ error }) => error ?? []);
  for (const error of failed) say(`sandgate: ${textOf(error)}`);
  if (failed.length > 0) throw new Told(`${failed.length} of ${count} failed`);
}

/** An entry of the API's answer. */
function answered({ sandbox, error }: Forked): object {
  if (sandbox) return { sandbox: sandbox.info };
  const { code, reason, message, requestId } = error;
  return { error: { code, reason, message, request_id: requestId } };
}

async function restore(name: string, options: MakeOptions): Promise<void> {
  const { client, out } = await taskOf(options);
  const { env, cpus, memory, storage } = options;
  const wanted = { ...common(options), ...given({ env_vars: env }), resources: given({ cpus, memory, storage }) };
  const made = await (await findSnapshot(client, name)).restore(wanted);
  out.show(made.info, () => out.line(made.id));
  tellWithout(made.info, options.restoreMemory);
  if (options.name) await warnOfNamesakes(client, made);
}

const common = ({ name, image, restoreMemory, wait }: MakeOptions) => ({
  ...given({ name: name || undefined, image: image || undefined, memory: restoreMemory }),
  wait_for_ready: wait,
});

async function list(options: CommonOptions & { quiet?: true }): Promise<void> {
  const { client, out } = await taskOf(options);
  const data = (await client.snapshots.list().all()).map(({ info }) => info);
  out.list(data, () => {
    if (options.quiet) for (const { id } of data) out.line(id);
    else
      out.table(
        ["ID", "NAME", "SOURCE", "CONSISTENCY", "SIZE", "EXCLUSIVE", "SHARED", "CREATED", "MEMORY"],
        data.map((one) => {
          const sizes = [one.size_bytes, one.exclusive_bytes, one.shared_bytes].map((bytes) => (bytes === null ? null : bytesText(bytes)));
          return [one.id, one.name, one.source_sandbox_name, one.consistency, ...sizes, ago(one.created_at), memoryText(one)];
        }),
      );
  });
}

const memoryText = ({ memory, memory_reason }: SnapshotInfo): string => {
  if (memory) return "yes";
  return memory_reason === null ? "no" : `no: ${memory_reason}`;
};

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
    .option("--restore-memory <wish>", "whether processes continue in it: prefer (the default), require or skip", memoryWish("--restore-memory"))
    .option("--no-wait", "do not wait until it is running");

const onImage = (made: Command): Command => made.option("--image <image>", "put the changed files on top of this image instead");

export function snapshotCommands(): Command[] {
  return [
    command("snapshot SANDBOX", "take a snapshot of a sandbox and print its id")
      .option("-n, --name <name>", "its name (default: generated)")
      .option("--quick", "do not freeze the sandbox meanwhile (crash-consistent, without memory)")
      .option("--memory <wish>", "whether to include the processes: prefer (the default), require or skip", memoryWish("--memory"))
      .action(take),
    onImage(sized(command("clone SANDBOX", "create a copy of a sandbox and print its id")))
      .option("--snapshot-name <name>", "the name of the intermediate snapshot")
      .action(clone),
    sized(command("fork SANDBOX", "create several copies of a sandbox and print their ids"))
      .option("-c, --count <n>", "number of copies, 1 to 100", whole("--count", 1), 1)
      .action(fork),
    onImage(sized(command("restore SNAPSHOT", "create a sandbox from a snapshot and print its id")))
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
