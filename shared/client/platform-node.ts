/** Node.js 18 and later. */
import { randomUUID } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { SandgateError } from "./errors.ts";
import type { LocalFile, Platform } from "./platform.ts";
import { openNodeSocket } from "./session/socket-node.ts";
import type { ByteStream } from "./transport.ts";
import { nodeTransport } from "./transport-node.ts";

const pieceBytes = 128 * 1024;

export const nodePlatform: Platform = {
  isBrowser: false,
  transport: nodeTransport,
  randomId: randomUUID,
  openSocket: openNodeSocket,
  readFile,
  writeFile,
};

async function readFile(path: string): Promise<{ bytes: ByteStream; size: number }> {
  const info = await stat(path);
  if (!info.isFile()) throw new SandgateError(`${path} is not a file`);
  return { bytes: bytesOf(path, info.size), size: info.size };
}

/** @throws {SandgateError} if the file becomes shorter while it is read; bytes appended meanwhile are ignored */
async function* bytesOf(path: string, size: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, "r");
  try {
    for (let at = 0; at < size; ) {
      const wanted = Math.min(pieceBytes, size - at);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
      if (bytesRead === 0) throw new SandgateError(`${path} became shorter while it was read`);
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}

async function writeFile(path: string): Promise<LocalFile> {
  const temporary = `${path}.${randomUUID().slice(0, 8)}.part`;
  const file = await open(temporary, "wx");
  return {
    async write(bytes) {
      await file.writeFile(bytes);
    },
    async keep() {
      await file.close();
      await rename(temporary, path);
    },
    async drop() {
      await file.close().catch(() => {});
      await rm(temporary, { force: true });
    },
  };
}
