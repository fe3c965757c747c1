/** The minimum for uWebSockets.js: one fixed answer to every request. Prints its port. */
import { App, type us_listen_socket, us_socket_local_port } from "uWebSockets.js";

App()
  .any("/*", (response) => void response.end("Hello, world!"))
  .listen("127.0.0.1", 0, (socket: us_listen_socket | false) => {
    if (!socket) throw new Error("no port to listen on");
    process.stdout.write(`${us_socket_local_port(socket)}\n`);
  });

// Exits with the parent process.
process.stdin.resume().once("end", () => process.exit());
