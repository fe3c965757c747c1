/** The sockets on which Podman's services of workers listen now. */
import { readFileSync } from "node:fs";

/** @param runtimeDir the XDG_RUNTIME_DIR of the workers */
export function podmanSockets(runtimeDir: string): string[] {
  const paths = readFileSync("/proc/net/unix", "utf8").matchAll(/ (\/\S+\/podman\/\d+\.sock)$/gm);
  return [...new Set([...paths].map(([, path = ""]) => path))].filter((path) => path.startsWith(`${runtimeDir}/`));
}
