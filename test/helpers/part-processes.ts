/** The processes that work for a worker beside itself, by their process ids. */
import { builtName } from "../../shared/programs.mjs";
import { processIds } from "../../shared/util/proc.ts";
import { execServerPath } from "../../worker/runtime/container/first-process.ts";
import { childrenOf, commandLineOf, environmentOf, monitorOf } from "../../worker/runtime/process/proc.ts";
import type { Stack } from "./stack.ts";

/** Podman's service of an installation's worker, while it runs. */
export function podmanService({ dataDir }: Stack): number | undefined {
  return processIds().find((pid) => {
    const [program = "", ...args] = commandLineOf(pid);
    return /(^|\/)podman$/.test(program) && args.includes("service") && args.includes("--root") && environmentOf(pid).some((entry) => entry.includes(dataDir));
  });
}

/** The privileged helper, where it is a process of its own. */
export function privilegedHelper({ dataDir }: Stack): number | undefined {
  const program = builtName("systemd/helper/main.ts");
  return processIds().find((pid) => {
    const words = commandLineOf(pid);
    return words.some((word) => word.endsWith(`/${program}`)) && words.some((word) => word.startsWith(dataDir));
  });
}

/** The process by which the worker starts programs. */
export function programStarter({ worker }: Stack): number | undefined {
  return childrenOf(worker.pid).find((pid) => commandLineOf(pid)[0] === "perl");
}

/** The monitors of the containers that run. */
export async function containerMonitors(stack: Stack): Promise<number[]> {
  return (await stack.containers()).flatMap(({ pid }) => (pid ? monitorOf(pid) : []));
}

/** The exec servers in the sandboxes. */
export async function execServers(stack: Stack): Promise<number[]> {
  return (await stack.containers()).flatMap(({ pid }) => (pid ? childrenOf(pid).filter((child) => commandLineOf(child)[0] === execServerPath) : []));
}
