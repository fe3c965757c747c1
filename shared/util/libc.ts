/** In-process calls of C library functions that Node.js does not offer. The constants are those of Linux on x86-64 and arm64. */
import { chmodSync, closeSync, constants, openSync } from "node:fs";
import { basename, dirname } from "node:path";
import { getSystemErrorName } from "node:util";
import koffi from "koffi";

export const library = koffi.load(null);
const pipe2 = library.func("int pipe2(_Out_ int *fds, int flags)");
const ioctl = library.func("int ioctl(int fd, unsigned long request, ...)");
const setsockopt = library.func("int setsockopt(int fd, int level, int name, const int *value, unsigned int length)");

const socket = library.func("int socket(int domain, int type, int protocol)");
const bindTo = library.func("bind", "int", ["int", "const uint8_t *", "unsigned int"]);
const listen = library.func("int listen(int fd, int backlog)");
const accept4 = library.func("int accept4(int fd, void *address, unsigned int *length, int flags)");
const getsockopt = library.func("int getsockopt(int fd, int level, int name, _Out_ uint8_t *value, _Inout_ unsigned int *length)");
const sendto = library.func("long sendto(int fd, const uint8_t *data, unsigned long size, int flags, const uint8_t *address, unsigned int length)");
const close = library.func("int close(int fd)");
const fcntl = library.func("int fcntl(int fd, int command, ...)");
const fcntlOfInteger = library.func("int fcntl(int fd, int command, int value)");
const vector = koffi.struct({ base: "void *", length: "size_t" });
const messageHeader = koffi.struct({
  name: "void *",
  nameLength: "uint32_t",
  vectors: koffi.pointer(vector),
  vectorCount: "size_t",
  control: "void *",
  controlLength: "size_t",
  flags: "int",
});
const sendmsg = library.func("sendmsg", "long", ["int", koffi.pointer(messageHeader), "int"]);
const syscall = library.func("long syscall(long number, ...)");
const leave = library.func("void _exit(int status)");
const readlink = library.func("long readlink(const char *path, _Out_ uint8_t *target, unsigned long size)");

const closeOnExec = 0o2000000;
const nonBlocking = 0o4000;
const setPtyLock = 0x40045431;
const getPtyNumber = 0x80045430;
const setWindowSize = 0x5414;
const socketLevel = 1;
const receiveBuffer = 8;
const peerCredentials = 17;
const tcpLevel = 6;
const tcpUnsentLow = 25;
/** Process, user and group. */
const credentialsBytes = 12;
/** More connections than this do not wait. */
const backlog = 4;
const everybody = 0o666;
const intBytes = 4;
const unixDomain = 1;
const messageSocket = 5;
const datagramSocket = 2;
/** An address of a Unix socket: its domain in two bytes, then a path. One that begins with a zero byte is no file. */
const domainBytes = 2;
const addressBytesMax = 110;
const rights = 1;
/** Of a control message: its length in 8 bytes, its level and its type. */
const controlHeaderBytes = 16;
const controlAlignment = 8;
const dontWait = 0x40;
const noSignal = 0x4000;
const setFileFlags = 4;
const setPipeSize = 1031;
const openat2 = 437;
/** The number of setresuid(2), which the C library would make for all threads of the process. */
const setresuid = process.arch === "arm64" ? 147 : 117;
const unchanged = -1;
const pathOnly = 0o10000000;
const resolveInRoot = 0x10;
const linkTarget = Buffer.alloc(256);

/**
 * Ends this process at once. `process.exit` has the threads end first, and waits forever for one that writes to LMDB, which waits
 * for this thread.
 */
export function exitNow(code: number): never {
  leave(code);
  throw new Error("the process has not ended");
}

/** Why a call has just failed, with the name of the error in its message and as its `code`. */
export function errorOf(call: string): Error & { readonly code: string } {
  const code = getSystemErrorName(-koffi.errno());
  return Object.assign(new Error(`${call}: ${code}`), { code });
}

/** @param result of a call that has just returned @throws {Error} if it failed, as `errorOf` has it */
export function check(result: number, call: string): void {
  if (result < 0) throw errorOf(call);
}

export interface Pipe {
  readonly readFd: number;
  readonly writeFd: number;
}

/** Opens a pipe that child processes do not inherit. Both ends are non-blocking. @throws {Error} */
export function openPipe(): Pipe {
  const fds: [number, number] = [-1, -1];
  check(pipe2(fds, closeOnExec | nonBlocking), "pipe2");
  return { readFd: fds[0], writeFd: fds[1] };
}

/** Lets reads and writes of a new pipe's end wait, as programs expect of their standard streams. @throws {Error} */
export function letWait(fd: number): void {
  check(fcntl(fd, setFileFlags, "int", 0), "F_SETFL");
}

/** Has a pipe hold more if it may, on another thread: the kernel makes whoever asks wait for a program that writes. */
export function growPipe(fd: number, bytes: number): Promise<void> {
  return new Promise((resolve) => fcntlOfInteger.async(fd, setPipeSize, bytes, () => resolve()));
}

/**
 * Listens on a Unix socket for connections that keep messages apart. Child processes do not inherit it.
 *
 * @param path must not exist. Everybody who can reach it may connect.
 * @throws {Error}
 */
export function listenForMessages(path: string): number {
  const fd = socket(unixDomain, messageSocket | closeOnExec | nonBlocking, 0);
  check(fd, "socket");
  try {
    // However long the path of the folder is.
    const dir = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const address = addressOf(`/proc/self/fd/${dir}/${basename(path)}`);
      check(bindTo(fd, address, address.length), "bind");
    } finally {
      closeSync(dir);
    }
    chmodSync(path, everybody);
    check(listen(fd, backlog), "listen");
    return fd;
  } catch (error) {
    close(fd);
    throw error;
  }
}

/** A connection, and the process that made it. */
export interface Accepted {
  readonly fd: number;
  readonly pid: number;
}

/** Takes a connection that waits, if one does. Child processes do not inherit it. @param listener from `listenForMessages` */
export function acceptConnection(listener: number): Accepted | undefined {
  const fd = accept4(listener, null, null, closeOnExec);
  if (fd < 0) return undefined;
  const credentials = Buffer.alloc(credentialsBytes);
  if (getsockopt(fd, socketLevel, peerCredentials, credentials, [credentialsBytes]) === 0) return { fd, pid: credentials.readInt32LE() };
  close(fd);
  return undefined;
}

/**
 * Sends a message with descriptors, without waiting.
 *
 * @returns whether it was sent: not when the other end is closed, has no room, or takes no message of this size.
 */
export function sendMessage(socket: number, bytes: Uint8Array, fds: readonly number[]): boolean {
  const dataBytes = controlHeaderBytes + intBytes * fds.length;
  const control = Buffer.alloc(Math.ceil(dataBytes / controlAlignment) * controlAlignment);
  control.writeBigUInt64LE(BigInt(dataBytes));
  control.writeInt32LE(socketLevel, 8);
  control.writeInt32LE(rights, 12);
  fds.forEach((fd, index) => control.writeInt32LE(fd, controlHeaderBytes + intBytes * index));
  const vectors = [{ base: bytes, length: bytes.length }];
  const header = { name: null, nameLength: 0, vectors, vectorCount: 1, control, controlLength: control.length, flags: 0 };
  return Number(sendmsg(socket, header, dontWait | noSignal)) === bytes.length;
}

/**
 * Sends a datagram to a Unix socket, without waiting.
 *
 * @param path that of the socket; with `@` in front, a name in the abstract namespace
 * @throws {Error} if nobody takes it
 */
export function sendDatagram(path: string, text: string): void {
  const address = addressOf(path.replace(/^@/, "\0"));
  const fd = socket(unixDomain, datagramSocket | closeOnExec, 0);
  check(fd, "socket");
  try {
    const bytes = Buffer.from(text);
    check(Number(sendto(fd, bytes, bytes.length, dontWait | noSignal, address, address.length)), "sendto");
  } finally {
    close(fd);
  }
}

/** The address of a Unix socket. @throws {Error} if it is too long for one */
function addressOf(name: string): Buffer {
  const bytes = Buffer.from(name);
  const address = Buffer.alloc(domainBytes + bytes.length);
  if (address.length > addressBytesMax) throw new Error(`the path of a socket is too long: ${name}`);
  address.writeUInt16LE(unixDomain);
  bytes.copy(address, domainBytes);
  return address;
}

/** Unlocks a pseudo-terminal so that its other side can be opened. @param fd its master. @returns its number in its `devpts`. @throws {Error} */
export function unlockTerminal(fd: number): number {
  check(ioctl(fd, setPtyLock, "int *", [0]), "TIOCSPTLCK");
  const number = Buffer.alloc(intBytes);
  check(ioctl(fd, getPtyNumber, "void *", number), "TIOCGPTN");
  return number.readUInt32LE();
}

/** Sets the size of a terminal. The kernel sends SIGWINCH to its foreground processes. @throws {Error} */
export function resizeTerminal(fd: number, rows: number, cols: number): void {
  check(ioctl(fd, setWindowSize, "uint16_t *", [rows, cols, 0, 0]), "TIOCSWINSZ");
}

/** Limits the kernel's receive buffer of a socket; Linux doubles the value for its own bookkeeping. @throws {Error} */
export function setReceiveBuffer(fd: number, bytes: number): void {
  check(setsockopt(fd, socketLevel, receiveBuffer, [bytes], intBytes), "SO_RCVBUF");
}

/** Has a TCP socket take no more once so many bytes wait in the kernel to be sent. @throws {Error} */
export function setUnsentBytesMax(fd: number, bytes: number): void {
  check(setsockopt(fd, tcpLevel, tcpUnsentLow, [bytes], intBytes), "TCP_NOTSENT_LOWAT");
}

/**
 * Opens a path as a process would whose root is that folder, so that no link leads out of it; for use as a place only.
 *
 * @returns a descriptor, or undefined if the path leads to nothing.
 */
export function openInside(rootFd: number, path: string): number | undefined {
  const how = new BigUint64Array([BigInt(pathOnly | closeOnExec), 0n, BigInt(resolveInRoot)]);
  const fd = Number(syscall(openat2, "int", rootFd, "const char *", path, "void *", how, "size_t", how.byteLength));
  return fd < 0 ? undefined : fd;
}

/**
 * Where a short link leads, or undefined when it cannot be read. That takes a third of the time of the exception of Node.js,
 * which counts where most links of a folder cannot be read.
 */
export function targetOf(link: string): string | undefined {
  const bytes = Number(readlink(link, linkTarget, linkTarget.length));
  return bytes < 0 ? undefined : linkTarget.toString("latin1", 0, bytes);
}

/**
 * Runs an action with another real user id in this thread, by which the kernel judges whom it may signal. The effective id, and
 * with it all rights, stay.
 *
 * @throws {Error} if the id is not ours to have, and whatever the action throws
 */
export function withRealUser<T>(user: number, action: () => T): T {
  const own = process.getuid?.() ?? 0;
  const become = (id: number): void => check(Number(syscall(setresuid, "int", id, "int", unchanged, "int", unchanged)), "setresuid");
  become(user);
  try {
    return action();
  } finally {
    become(own);
  }
}

/** Where the content of a buffer is in memory, which it leaves only when nobody refers to it any more. */
export const addressIn = (buffer: Uint8Array): bigint => BigInt(koffi.address(buffer));
