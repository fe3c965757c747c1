/** Images of processes as streams: the files that CRIU has written, packed, compressed and sealed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import { searchPath } from "../../base/search-path.mjs";
import { Refusal } from "../refusal.ts";
import { type ImagePlace, refuseWithoutRoom } from "./room.ts";
import { seal, unseal } from "./sealed.ts";

const options = { cwd: "/", env: { PATH: searchPath, LC_ALL: "C" } } as const;
const compression = { params: { [constants.ZSTD_c_compressionLevel]: 3 } };
/** Of tar(1): each file begins with a block of its own and fills its last one, two end the archive, and that fills its last record. */
const blockBytes = 512;
const endBlocks = 2;
const recordBytes = 20 * blockBytes;
/** How often it is looked whether the disk still has room. */
const lookBytes = 64 * 1024 * 1024;

/** What is known of an image before any of it is unpacked. */
export interface About {
  readonly mounts: readonly string[];
  readonly made: string;
  /** What it takes on disk, at most. */
  readonly bytes: number;
}

/** The files of an image. */
export const imageFiles = (dir: string): string[] => readdirSync(dir).filter((name) => name.endsWith(".img"));

export interface Sealing {
  readonly key: Uint8Array;
  readonly identity: number;
}

/** Writes an image to a stream. The stream has an end only if all of it was written. @throws {Refusal} */
export async function pack(dir: string, about: Omit<About, "bytes">, { key, identity }: Sealing, to: Writable): Promise<void> {
  const names = imageFiles(dir);
  const bytes = archiveBytes(names.map((name) => statSync(join(dir, name)).size));
  const tar = spawn("tar", ["--create", "--format=gnu", `--directory=${dir}`, "--", ...names], { ...options, stdio: ["ignore", "pipe", "inherit"] });
  const ended = endOf(tar);
  ended.catch(() => {});
  const head = Buffer.from(JSON.stringify({ ...about, bytes } satisfies About));
  try {
    await pipeline(whole(tar.stdout, ended), createZstdCompress(compression), (parts: AsyncIterable<Buffer>) => seal(key, identity, head, parts), to);
  } finally {
    tar.kill("SIGKILL");
  }
}

/** How long an archive of files with these sizes is. */
export function archiveBytes(sizes: readonly number[]): number {
  const blocks = sizes.reduce((sum, size) => sum + 1 + Math.ceil(size / blockBytes), endBlocks);
  return Math.ceil((blocks * blockBytes) / recordBytes) * recordBytes;
}

export interface Unpacking extends Sealing {
  readonly place: ImagePlace;
  /** Refuses an image that is of no use here. */
  readonly check: (about: About) => void;
}

/**
 * Writes an image from a stream into an empty folder, which is to be thrown away when this fails.
 *
 * @throws {Refusal} unless all of it is genuine, and fits
 */
export async function unpack(from: AsyncIterable<Uint8Array>, dir: string, { key, identity, place, check }: Unpacking): Promise<About> {
  const { about: head, body } = await unseal(key, identity, from);
  const about = JSON.parse(head.toString()) as About;
  check(about);
  await refuseWithoutRoom(place, about.bytes);
  const tar = spawn("tar", ["--extract", `--directory=${dir}`], { ...options, stdio: ["pipe", "ignore", "inherit"] });
  const ended = endOf(tar);
  ended.catch(() => {});
  try {
    await pipeline(body, createZstdDecompress(), bounded(about.bytes, place), (parts: AsyncIterable<Buffer>) => feed(tar.stdin, parts));
    await ended;
    return about;
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal("refused", `the image of memory could not be unpacked: ${String(error)}`);
  } finally {
    tar.kill("SIGKILL");
  }
}

/** Tar ends when it has seen the end of its archive, before it has taken all that follows; what is not taken is read all the same, to its end. */
async function feed(to: Writable, parts: AsyncIterable<Buffer>): Promise<void> {
  to.on("error", () => {});
  for await (const part of parts) {
    if (!to.writable || to.write(part)) continue;
    await new Promise<void>((resolve) => {
      to.once("drain", resolve).once("close", resolve);
      if (to.destroyed) resolve();
    });
  }
  to.end();
}

/** Passes on what was announced and no more, while the disk has room. */
function bounded(bytesMax: number, place: ImagePlace) {
  return async function* (parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let [bytes, looked] = [0, 0];
    for await (const part of parts) {
      bytes += part.length;
      if (bytes > bytesMax) throw new Refusal("refused", "the image of memory is larger than it says");
      if (bytes - looked >= lookBytes) {
        looked = bytes;
        await refuseWithoutRoom(place, 0);
      }
      yield part;
    }
  };
}

async function endOf(program: ChildProcess): Promise<void> {
  const [code] = (await once(program, "exit")) as [number | null];
  if (code !== 0) throw new Refusal("refused", `the files of an image of memory could not be read or written (${code})`);
}

/** The output of a program, with an end only if the program has succeeded. */
async function* whole(output: AsyncIterable<Buffer>, ended: Promise<void>): AsyncGenerator<Buffer> {
  yield* output;
  await ended;
}
