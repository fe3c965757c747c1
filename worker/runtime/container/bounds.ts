/** What a container can do by its namespaces, limited from outside before anything of the sandbox runs in it. */
import type { Host } from "../host/host.ts";
import { userLimits } from "../ids/bounds.ts";
import { closingProgram, type Namespace } from "../network/network.ts";
import { inNamespacesOf } from "../process/namespaces.ts";
import { programFailure, run } from "../process/run.ts";

const timeoutMs = 10_000;

export interface Bounded {
  /** Host pid of its first process. */
  readonly pid: number;
  readonly network: "none" | "outbound";
  /** Whether it has a user namespace of its own. */
  readonly hasOwnIds: boolean;
  readonly namespace: Namespace;
}

/**
 * Closes the private ranges to its network, and limits what its users may take of the kernel. One program does both.
 *
 * @throws {SandgateError} `internal_error`, `unavailable`; the sandbox must not be handed out then.
 */
export async function boundNamespaces(host: Host, { pid, network, hasOwnIds, namespace }: Bounded): Promise<void> {
  const closing = network === "outbound" ? closingProgram(host, namespace) : undefined;
  if (!closing && !hasOwnIds) return;
  const [file = "", ...args] = inNamespacesOf({ pid, values: hasOwnIds ? userLimits() : {}, command: closing?.command });
  const result = await run(file, args, { timeoutMs, ...(closing && { input: closing.input }) });
  if (result.exitCode !== 0) throw programFailure("the sandbox could not be closed off", result);
}
