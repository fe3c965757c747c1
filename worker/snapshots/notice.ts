/** Tells the programs of a copy that they are one, by the signal that its settings name: those that catch it, as it would end others. */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { signalName } from "../../shared/stream/session/protocol.ts";
import { attempt } from "../../shared/util/attempt.ts";
import type { Container } from "../runtime/container/container.ts";
import { processesByNamespace, signal } from "../runtime/process/proc.ts";

/** Of a sandbox's environment. */
export const noticeVariable = "SANDGATE_CLONED";

/** Does nothing where the environment names no signal. */
export function tellCopied({ pidNamespace }: Pick<Container, "pidNamespace">, environment: Readonly<Record<string, string>>): void {
  const name = signalName(environment[noticeVariable] ?? "") as NodeJS.Signals | undefined;
  if (!name) return;
  for (const pid of processesByNamespace().get(pidNamespace) ?? []) if (catches(pid, constants.signals[name])) signal(pid, name, pidNamespace);
}

function catches(pid: number, number: number): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(attempt(() => readFileSync(`/proc/${pid}/status`, "utf8")) ?? "")?.[1];
  return mask !== undefined && ((BigInt(`0x${mask}`) >> BigInt(number - 1)) & 1n) === 1n;
}
