/** cluster: several NATS servers of one installation. These commands work on a machine with one of them. */
import type { Command } from "commander";
import { programFile } from "../../programs.mjs";
import { confirm } from "../confirm.ts";
import { Output, say } from "../output.ts";
import type { AdminOptions } from "./task.ts";

export interface ClusterStatus {
  readonly nodes: readonly {
    readonly id: string;
    readonly state: string;
    /** Null until the machine was installed. */
    readonly host: string | null;
    /** How many streams it has a copy of, and how many of these have everything. */
    readonly copies: number;
    readonly current: number;
  }[];
  /** All streams, and those of which every server that should has everything. */
  readonly streams: number;
  readonly complete: number;
  /** The others. `lag` is how many changes a copy lacks; it may have all and not be in touch with the leader yet. */
  readonly incomplete: readonly {
    readonly name: string;
    readonly leader: string | null;
    readonly behind: readonly { readonly node: string; readonly lag: number; readonly offline: boolean }[];
  }[];
}

/** What is done on this machine, as root. */
export interface ClusterWork {
  status(): Promise<ClusterStatus>;
  /** Makes a cluster of the servers that are there. @returns whether there was none before */
  form(say: (line: string) => void): Promise<boolean>;
}

/** Part of the start-up scripts, on which nothing in this folder depends otherwise. */
const here = async (): Promise<ClusterWork> => ((await import(programFile("systemd/fleet/joiners.ts"))) as { cluster: ClusterWork }).cluster;

const outputOf = (command: Command): Output => new Output(command.optsWithGlobals<AdminOptions>().json ?? false);

async function status(_: unknown, command: Command): Promise<void> {
  const out = outputOf(command);
  const found = await (await here()).status();
  const rows = found.nodes.map(({ id, host, state, copies, current }) => [id, host ?? "-", state, `${current} of ${copies}`]);
  out.show(found, () => {
    out.table(["ID", "ADDRESS", "STATE", "COMPLETE COPIES"], rows, "There is one NATS server, and no cluster.");
    if (found.nodes.length > 0) out.text(`${found.complete} of ${found.streams} streams have all their copies.`);
    for (const { name, leader, behind } of found.incomplete)
      out.text(`${name}: ${leader ? behind.map(({ node, lag }) => `${node} lacks ${lag}`).join(", ") : "no leader"}`);
  });
}

async function form(_: unknown, command: Command): Promise<void> {
  const { yes } = command.optsWithGlobals<AdminOptions>();
  if (!yes) await confirm("Stop the NATS server for some seconds, in which all calls get 503?", "--yes");
  const isNew = await (await here()).form(say);
  outputOf(command).show({ formed: isNew }, () =>
    outputOf(command).text(isNew ? "The NATS servers are a cluster." : "The NATS servers were a cluster already."),
  );
}

export function addClusterCommands(admin: Command): void {
  const cluster = admin.command("cluster").description("show the NATS servers of this installation (as root, where one runs)").action(status);
  cluster.command("form").description("make a cluster of three NATS servers or more, once all are installed").action(form);
}
