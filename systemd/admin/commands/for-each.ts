/** The same call for several ids: one that fails does not keep the others from being done. */
import { messageOf } from "../../failure.ts";
import type { Session } from "../command.ts";
import { AdminError } from "../failures.ts";

/**
 * @param done what has then happened to each, such as "revoked"
 *
 * @throws {AdminError} at the end, naming what failed
 */
export async function forEach({ operands, out }: Session, act: (id: string) => Promise<unknown>, done: string): Promise<void> {
  const answers: unknown[] = [];
  const failures: string[] = [];
  for (const id of new Set(operands)) {
    try {
      answers.push(await act(id));
      if (!out.isJson) out.say(`${id} is ${done}.`);
    } catch (error) {
      if (!(error instanceof AdminError)) throw error;
      failures.push(`${id}: ${messageOf(error)}`);
    }
  }
  if (out.isJson && answers.length > 0) out.show(operands.length === 1 ? answers[0] : { data: answers }, () => undefined);
  if (failures.length > 0) throw new AdminError(failures.join("\n"));
}
