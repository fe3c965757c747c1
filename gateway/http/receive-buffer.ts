/**
 * Bounds the kernel's receive buffer of every connection.
 *
 * uWebSockets.js reads a socket in a loop, without returning to the event loop, as long as each read fills nearly all of
 * its 512 KiB buffer; `pause()` has no effect meanwhile. A fast sender could thus occupy the gateway and fill its memory
 * (measured: 1 GiB on loopback). With a smaller kernel buffer the loop ends after one read, and `pause()` takes effect at
 * once. Neither uWS nor Node can set the socket option, so it is set through the C library on the listening socket, from
 * which connections inherit it.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setReceiveBuffer } from "../../shared/util/libc.ts";
import type { Logger } from "../../shared/util/log.ts";

/** Linux doubles this for its own bookkeeping, so a read returns less than 400 KiB. */
const receiveBufferBytes = 192 * 1024;
/** The state of a listening socket in /proc/net/tcp. */
const listening = "0A";

/** Sets the bound on the socket that listens on this port. A failure is logged and otherwise ignored. */
export function boundReceiveBuffer(port: number, log: Logger): void {
  try {
    for (const descriptor of listeningDescriptors(port)) setReceiveBuffer(descriptor, receiveBufferBytes);
  } catch (error) {
    log.warn({ err: error }, "the receive buffer could not be bounded: fast uploads may take much memory");
  }
}

function listeningDescriptors(port: number): number[] {
  const inodes = new Set(["tcp", "tcp6"].flatMap((table) => socketsOf(table, port)));
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((descriptor) => inodes.has(inodeOf(descriptor)));
}

function socketsOf(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync(`/proc/self/net/${table}`, "utf8")
    .split("\n")
    .map((row) => row.trim().split(/\s+/));
  return rows.flatMap(([, local = "", , state, , , , , , inode = ""]) => (state === listening && local.endsWith(suffix) ? [inode] : []));
}

function inodeOf(descriptor: number): string {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1] ?? "";
  } catch {
    return "";
  }
}
