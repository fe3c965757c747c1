/** How many files and sockets a part may have open: many machines start with few, a busy gateway holds thousands. */
import { succeeds } from "../base/run.ts";

const prefix = ["prlimit", "--nofile=1048576:1048576", "--"];

/** What to put before a command for a high limit; nothing where this user may not raise it. */
export async function manyOpenFiles(): Promise<string[]> {
  return (await succeeds([...prefix, "true"])) ? prefix : [];
}
