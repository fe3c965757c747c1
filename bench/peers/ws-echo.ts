/** The minimum for a WebSocket: it echoes every message. Prints its port. */
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
server.on("connection", (socket) => socket.on("message", (data, isBinary) => socket.send(data as Buffer, { binary: isBinary })));
server.once("listening", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));

// Exits with the parent process.
process.stdin.resume().once("end", () => process.exit());
