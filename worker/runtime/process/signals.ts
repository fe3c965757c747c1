/** Sends signals to what a command runs in the foreground. */
import { childrenOf, groupsOf, pidNamespaceOf, sendSignal } from "./proc.ts";

/**
 * Signals the foreground process group of a command's terminal or, without a terminal, the command's own group. Does nothing
 * when the command is gone.
 *
 * @param reaper the command's subreaper
 */
export function signalGroup(reaper: number | undefined, name: NodeJS.Signals): void {
  const command = reaper === undefined ? undefined : childrenOf(reaper)[0];
  const groups = command === undefined ? undefined : groupsOf(command);
  if (reaper === undefined || !groups) return;
  const group = groups.foreground > 0 ? groups.foreground : groups.group;
  // A group's leader may end before its members. If it still exists, it must belong to the sandbox.
  const space = pidNamespaceOf(group);
  if (group <= 1 || (space !== undefined && space !== pidNamespaceOf(reaper))) return;
  sendSignal(-group, command as number, name);
}
