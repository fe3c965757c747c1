/** A program with everything that a program can have in memory, which is copied and moved while it runs on. */
import assert from "node:assert/strict";
import { until } from "../helpers/until.ts";
import type { Client } from "./client.ts";

/** Counts in memory and in a file, listens, holds memory that it knows the checksum of, and is in the middle of a transaction. */
const program = (MiB: number): string => `
import hashlib, os, socket, sqlite3, threading, time
buffer = bytearray(os.urandom(${MiB} * 1024 * 1024))
checksum = hashlib.sha1(buffer).hexdigest()
database = sqlite3.connect('/root/database', isolation_level=None, check_same_thread=False)
database.execute('create table if not exists rows (n integer)')
database.execute('begin immediate')
count = 0
def counting():
    global count
    while True:
        count += 1
        with open('/root/counts', 'a') as file: file.write(f'{count}\\n')
        time.sleep(0.05)
threading.Thread(target=counting, daemon=True).start()
server = socket.socket()
server.bind(('127.0.0.1', 7000))
server.listen()
asked = 0
while True:
    peer, _ = server.accept()
    word = peer.recv(100).decode()
    asked += 1
    database.execute('insert into rows values (?)', (asked,))
    if word == 'commit': database.execute('commit')
    peer.sendall(f'{asked} {count} {hashlib.sha1(buffer).hexdigest()} {checksum}'.encode())
    peer.close()
`;

/** What the program's command line begins with. */
export const counterPattern = "^python3 /root/program.py";

/** Starts a program in the background, which has nothing of the command that starts it. */
export const inBackground = (command: string): string => `setsid ${command} > /dev/null 2>&1 < /dev/null &`;

/** What the program says of itself. */
export interface CounterState {
  /** How often it was asked. */
  readonly asked: number;
  /** How far it has counted. */
  readonly count: number;
  /** Whether its memory is whole. */
  readonly whole: boolean;
  /** Which of all such programs it is: nothing but its memory has that. */
  readonly mark: string;
}

export class Counters {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Starts the program in a sandbox, and waits until it answers. */
  async start(id: string, MiB: number): Promise<void> {
    await this.#client.output(id, `cat > /root/program.py <<'END'${program(MiB)}END\n${inBackground("python3 /root/program.py")}`);
    await until("the program answers", () => this.ask(id), 60_000);
  }

  async ask(id: string, word: "state" | "commit" = "state"): Promise<CounterState> {
    const script = `import socket; s = socket.create_connection(('127.0.0.1', 7000)); s.sendall(b'${word}'); print(s.recv(100).decode())`;
    const [asked, count, found, mark] = (await this.#client.output(id, `python3 -c "${script}"`)).trim().split(" ");
    if (mark === undefined) throw new Error("the program does not answer");
    return { asked: Number(asked), count: Number(count), whole: found === mark, mark };
  }

  /** The numbers that it has counted, as it has written them. */
  async counts(id: string): Promise<number[]> {
    return (await this.#client.output(id, "cat /root/counts")).trim().split("\n").map(Number);
  }

  /** It has counted without a jump or a repetition: what it has in memory fits its files. */
  async assertNoJump(id: string): Promise<void> {
    assertNoJump(await this.counts(id));
  }
}

export function assertNoJump(numbers: readonly number[]): void {
  assert.deepEqual(
    numbers.filter((number, index) => number !== index + 1),
    [],
  );
}
