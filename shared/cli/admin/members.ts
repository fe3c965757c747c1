/** join-token, members: other machines of an installation. These commands work on the machine of the NATS server itself. */
import type { Command } from "commander";
import { programFile } from "../../programs.mjs";
import { confirm } from "../confirm.ts";
import { Output, say } from "../output.ts";
import type { AdminOptions } from "./task.ts";

/** A machine that has been let in, by what it is called on the bus. */
interface Member {
  readonly id: string;
  readonly role: "worker" | "gateway" | "nats";
  /** The machine with a NATS server that it runs on. */
  readonly machine?: string;
}

/** What a machine that joins may run. */
export const joiningRoles = ["worker", "gateway", "nats", "all"] as const;

interface TokenOptions {
  readonly role: (typeof joiningRoles)[number];
  /** Where the new machine reaches this one. */
  readonly address?: string;
}

/** What is done on this machine, as root. */
export interface Joiners {
  members(): Promise<Member[]>;
  /** Lets one more machine in. @returns the command to run there */
  add(options: TokenOptions): Promise<{ readonly id: string; readonly role: string; readonly command: string }>;
  /** Ends the connections of a member for good. @returns what it leaves to think of @throws {Error} if there is no such member */
  remove(id: string): Promise<{ readonly note?: string }>;
}

/** Part of the start-up scripts, on which nothing in this folder depends otherwise. */
const here = async (): Promise<Joiners> => ((await import(programFile("systemd/fleet/joiners.ts"))) as { joiners: Joiners }).joiners;

async function joinToken(options: AdminOptions & TokenOptions): Promise<void> {
  const added = await (await here()).add(options);
  new Output(options.json ?? false).show(added, () => {
    say(`On the new machine, where Sandgate of this version is unpacked, and which becomes ${added.id}:\n`);
    process.stdout.write(`${added.command}\n`);
    say(`\nWhoever has this line can be that machine. Take it back with: sudo sandgate-admin members rm ${added.id}`);
  });
}

async function list(_: unknown, command: Command): Promise<void> {
  const out = new Output(command.optsWithGlobals<AdminOptions>().json ?? false);
  const data = await (await here()).members();
  const rows = data.map(({ id, role, machine }) => [id, role, machine ?? "-"]);
  out.show({ data }, () => out.table(["ID", "ROLE", "MACHINE"], rows, "No other machine has been let in."));
}

async function remove(id: string, _: unknown, command: Command): Promise<void> {
  const { json, yes } = command.optsWithGlobals<AdminOptions>();
  if (!yes) await confirm(`Disconnect ${id} for good?`, "--yes");
  const { note } = await (await here()).remove(id);
  const out = new Output(json ?? false);
  out.show({ id, removed: true, ...(note ? { note } : {}) }, () => out.text(`${id} is disconnected, and cannot join any more.${note ? `\n${note}` : ""}`));
}

export function addMemberCommands(admin: Command): void {
  admin
    .command("join-token")
    .description("print the command with which another machine joins this one (as root, where the NATS server runs)")
    .option("--role <role>", `what it runs: ${joiningRoles.join(", ")}`, "worker")
    .option("--address <host>", "where it reaches this machine (default: SANDGATE_NATS_HOST, or this machine's first address)")
    .action((_: unknown, command: Command) => joinToken(command.optsWithGlobals()));
  const members = admin.command("members").description("list the other machines that have been let in (as root, where the NATS server runs)").action(list);
  members.command("rm <MEMBER>").description("disconnect one for good").action(remove);
}
