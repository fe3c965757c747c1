/** Raises the limit of open files and sockets: it is low on many machines, and a busy gateway has thousands. */
import { succeeds } from "../base/run.ts";

const prefix = ["prlimit", "--nofile=1048576:1048576", "--"];

/** The words to put before a command to raise its limit; none if this user may not raise it. */
export async function manyOpenFiles(): Promise<string[]> {
  return (await succeeds([...prefix, "true"])) ? prefix : [];
}
