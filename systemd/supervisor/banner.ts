/** The banner that is printed when everything runs. */

import type { Config } from "../../shared/config.ts";
import { alignColumns } from "../../shared/util/columns.ts";
import { reachedHere, withPort } from "../../shared/util/host.ts";
import type { Accounts } from "../base/instance.ts";
import { type Terminal, visible } from "../base/terminal.ts";
import { isVolume, type NoVolume, type Volume } from "../volume/volume.ts";

/** One property of the host, as reported by the worker. */
export interface HostCheck {
  readonly name: string;
  readonly value: string;
  readonly ok: boolean;
  readonly note?: string;
}

/** The host checks in the worker's ready line. Malformed entries are dropped. */
export function hostChecksOf(fields: Readonly<Record<string, unknown>>): HostCheck[] {
  const checks = (fields.host as { checks?: unknown } | undefined)?.checks;
  if (!Array.isArray(checks)) return [];
  return checks.flatMap((check: Partial<HostCheck>) => {
    if (typeof check?.name !== "string") return [];
    const note = typeof check.note === "string" ? { note: check.note } : {};
    return [{ name: check.name, value: String(check.value ?? ""), ok: check.ok !== false, ...note }];
  });
}

/** Whether the parts run as separate users, which only root can arrange. */
export function usersCheck({ worker, gateway, nats }: Accounts): HostCheck {
  const names = [...new Set([worker, gateway, nats].map(({ name }) => name))];
  const ok = names.length > 1;
  return {
    name: "users",
    value: names.join(", "),
    ok,
    ...(ok ? {} : { note: "one for all parts: who takes over one has the others; start as root for one each" }),
  };
}

/** Where sandboxes are stored, or why not in a volume. */
export function volumeCheck(volume: Volume | NoVolume): HostCheck {
  if (isVolume(volume)) return { name: "volume", value: volume.dir, ok: true };
  return { name: "volume", value: "none", ok: false, note: `${volume.reason}; the size of sandboxes is watched, and snapshots copy files` };
}

/** The address that reaches a gateway listening on `host` from this machine. */
export function urlOf({ host, tlsCertificate }: Pick<Config, "host" | "tlsCertificate">, port: number): string {
  return `http${tlsCertificate ? "s" : ""}://${withPort(reachedHere(host), port)}`;
}

export function printHost(terminal: Terminal, checks: readonly HostCheck[]): void {
  const lines = alignColumns(checks.map(({ name, value, note }) => [name, value, note ?? ""].map(onOneLine)));
  if (lines.length > 0) terminal.line();
  lines.forEach((line, index) => {
    const fine = checks[index]?.ok !== false;
    terminal.line(`  ${terminal.paint(fine ? "green" : "yellow", fine ? "✓" : "!")} ${line}`);
  });
}

/** Escapes the worker's text, so that it cannot imitate lines of the supervisor. */
const onOneLine = (text: string): string => visible(text).replaceAll("\n", "\\n");

export function printReady(terminal: Terminal, url: string, apiKey: string): void {
  const call = (path: string, body: string) => `curl -sS ${url}${path} -H 'x-api-key: ${apiKey}' -H 'content-type: application/json' -d '${body}'`;
  const create = `SANDBOX=$(${call("/v1/sandboxes/create", '{"image":"default"}')} | grep -o 'sb_[A-Za-z0-9_-]*' | head -n 1); echo $SANDBOX`;
  const execute = call("/v1/sandboxes/'$SANDBOX'/execute", '{"command":"uname -a"}').replace("'$SANDBOX'", "$SANDBOX");
  terminal.line();
  terminal.line(terminal.paint("bold", "Sandgate is ready."));
  terminal.line();
  terminal.line(`  URL      ${terminal.paint("cyan", url)}  ${terminal.paint("dim", "in a browser: sign up, create keys, watch")}`);
  terminal.line(`  API key  ${terminal.paint("cyan", apiKey)}  ${terminal.paint("dim", "of the operator")}`);
  terminal.line();
  terminal.line("Create a sandbox, then run a command in it:");
  terminal.line();
  terminal.line(create);
  terminal.line();
  terminal.line(execute);
  terminal.line();
  terminal.line(terminal.paint("dim", "Ctrl-C stops everything. Sandboxes and their files return at the next start."));
}
