/** Programs that people bring to a sandbox do real work under its list of system calls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { toolchains, toolchainsImage } from "../../helpers/toolchains.ts";

const stack = await fixture(startStack({ name: "toolchains", settings: { ...plain, SANDGATE_LOCAL_IMAGES: toolchains } }));
const api = new Api(stack);
const id = await api.create({ image: await toolchainsImage(stack.instance), resources: { cpus: 2, memory: 3_072 } });

/** Runs a script that stops at its first failure; @returns what it printed. */
async function work(script: string): Promise<string> {
  const { stdout, stderr, exit_code, error } = await api.execute(id, `set -e\n${script}`, { timeout: 240, env: { HOME: "/root" } });
  assert.equal(exit_code, 0, `${error ?? ""}\n${stdout}\n${stderr}`);
  return stdout;
}

/** A file made by the shell, as it stands. */
const file = (path: string, text: string): string => `mkdir -p $(dirname ${path}); cat > ${path} <<'END'\n${text.trim()}\nEND`;

test("gcc: a program with threads, processes, shared memory, sockets, signals and timers", async () => {
  const source = `
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#define MUST(what) do { if ((long)(what) == -1) { perror(#what); exit(1); } } while (0)
static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *count(void *unused) { for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&lock); counter++; pthread_mutex_unlock(&lock); } return NULL; }
int main(void) {
  pthread_t threads[32];
  for (int i = 0; i < 32; i++) if (pthread_create(&threads[i], NULL, count, NULL)) return 2;
  for (int i = 0; i < 32; i++) pthread_join(threads[i], NULL);
  int segment, pair[2], status; char *shared; char byte;
  MUST(segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
  MUST(shared = shmat(segment, NULL, 0));
  sem_t *gate = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(sem_init(gate, 1, 0));
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  if (fork() == 0) { shared[0] = 'x'; sem_post(gate); MUST(write(pair[1], "y", 1)); _exit(7); }
  MUST(sem_wait(gate));
  MUST(read(pair[0], &byte, 1));
  MUST(wait(&status));
  sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, NULL);
  int signals, poll, timer; MUST(signals = signalfd(-1, &set, 0)); MUST(poll = epoll_create1(0)); MUST(eventfd(0, 0)); MUST(inotify_init1(0));
  MUST(timer = timerfd_create(CLOCK_MONOTONIC, 0)); MUST(memfd_create("m", 0)); MUST(shm_open("/s", 0102, 0600)); MUST(shm_unlink("/s"));
  struct epoll_event event = { .events = EPOLLIN }; MUST(epoll_ctl(poll, EPOLL_CTL_ADD, signals, &event));
  raise(SIGUSR1);
  MUST(epoll_wait(poll, &event, 1, 1000));
  printf("%d %c %c %d\\n", counter, shared[0], byte, WEXITSTATUS(status));
}`;
  assert.equal(await work(`${file("/root/c/main.c", source)}\ncd /root/c; gcc -O2 -pthread -o main main.c; ./main`), "32000 x y 7\n");
});

test("strace: follows a program and its children, as a debugger does", async () => {
  const trace = await work(
    "strace -f -o /tmp/trace sh -c 'ls / | wc -l' > /dev/null; grep -c 'execve(' /tmp/trace; grep -c '+++ exited with 0 +++' /tmp/trace",
  );
  assert.match(trace, /^[3-9]\n[3-9]\n$/);
});

test("git: commits, branches, clones, packs and gc", async () => {
  const script = `
rm -rf /root/g; mkdir -p /root/g/one; cd /root/g/one; git init -q -b main; git config user.email a@b.c; git config user.name A
for i in $(seq 200); do echo $i > file$i; done; git add .; git commit -qm first; git checkout -qb side; seq 5000 > big; git add .; git commit -qm second
git checkout -q main; git merge -q --no-edit side; git gc -q; git clone -q file:///root/g/one /root/g/two; cd /root/g/two; git log --oneline | wc -l; git fsck --no-progress; git status --short | wc -l`;
  assert.equal(await work(script), "2\n0\n");
});

test("python: venv, pip with a wheel, processes, threads, asyncio and sockets", async () => {
  const wheel = `
import zipfile
with zipfile.ZipFile("/root/p/hello-1.0-py3-none-any.whl", "w") as z:
    z.writestr("hello.py", "def main(): print('hello from a wheel')")
    z.writestr("hello-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: hello\\nVersion: 1.0\\n")
    z.writestr("hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("hello-1.0.dist-info/entry_points.txt", "[console_scripts]\\nhello = hello:main\\n")
    z.writestr("hello-1.0.dist-info/RECORD", "")`;
  const program = `
import asyncio, concurrent.futures, ctypes, multiprocessing, multiprocessing.shared_memory, os, signal, socket, subprocess, tempfile, threading
def square(n): return n * n
async def talk():
    async def answer(reader, writer): writer.write((await reader.readline()).upper()); await writer.drain(); writer.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()); writer.write(b"asked\\n"); return (await reader.readline()).decode().strip()
if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool: print(sum(pool.map(square, range(100))))
    with concurrent.futures.ThreadPoolExecutor(16) as pool: print(sum(pool.map(square, range(100))))
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=64); memory.buf[0] = 7; print(memory.buf[0]); memory.close(); memory.unlink()
    print(asyncio.run(talk()), subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip())
    print([name for _, name in socket.if_nameindex()][0], os.sched_getaffinity(0) != set())`;
  const script = `${file("/root/p/wheel.py", wheel)}\n${file("/root/p/main.py", program)}
cd /root/p; python3 wheel.py; python3 -m venv --clear env; env/bin/pip install -q --no-index --disable-pip-version-check ./hello-1.0-py3-none-any.whl; env/bin/hello; env/bin/python main.py`;
  assert.equal(await work(script), "hello from a wheel\n328350\n328350\n7\nASKED child\nlo True\n");
});

test("node: workers, child processes, watched files, HTTP and file streams", async () => {
  const program = `
const { Worker } = require("node:worker_threads"), { execFileSync, fork } = require("node:child_process"), fs = require("node:fs"), http = require("node:http"), { once } = require("node:events");
if (process.argv[2] === "child") { process.send("from a fork"); process.disconnect(); return; }
(async () => {
  const workers = Array.from({ length: 4 }, (_, n) => new Worker("require('node:worker_threads').parentPort.postMessage(" + n + " ** 2)", { eval: true }));
  console.log((await Promise.all(workers.map((w) => once(w, "message")))).flat().join());
  console.log(execFileSync("sh", ["-c", "echo shell"]).toString().trim(), (await once(fork(__filename, ["child"]), "message"))[0]);
  fs.mkdirSync("watched", { recursive: true });
  const watcher = fs.watch("watched"); const seen = once(watcher, "change"); fs.writeFileSync("watched/new", "x"); console.log((await seen)[1]); watcher.close();
  const server = http.createServer((request, response) => fs.createReadStream(__filename).pipe(response)).listen(0, "127.0.0.1"); await once(server, "listening");
  const body = await new Promise((resolve) => http.get({ port: server.address().port }, async (r) => { let n = 0; for await (const c of r) n += c.length; resolve(n); }));
  console.log(body === fs.statSync(__filename).size); server.close();
  console.log(require("node:crypto").scryptSync("a", "b", 8).length, require("node:os").networkInterfaces().lo !== undefined);
})();`;
  assert.equal(await work(`${file("/root/n/main.js", program)}\ncd /root/n; node main.js`), "0,1,4,9\nshell from a fork\nnew\ntrue\n8 true\n");
});

test("apt-get: installs from a repository, with scripts that add users; and takes it away again", async () => {
  const control = "Package: hello-sandbox\nVersion: 1.0\nArchitecture: all\nMaintainer: A <a@b.c>\nDepends: adduser\nDescription: says hello";
  const postinst = "#!/bin/sh\nset -e\nadduser --system --group --quiet hello-sandbox\nuseradd -r hello-plain";
  const script = `${file("/root/d/hello/DEBIAN/control", control)}\n${file("/root/d/hello/DEBIAN/postinst", postinst)}\n${file("/root/d/hello/usr/bin/hello-sandbox", "#!/bin/sh\necho hello from a package")}
cd /root/d; chmod 755 hello/DEBIAN/postinst hello/usr/bin/hello-sandbox; mkdir -p /srv/repo; dpkg-deb --build hello /srv/repo/hello-sandbox_1.0_all.deb > /dev/null
cd /srv/repo; { dpkg-deb -f hello-sandbox_1.0_all.deb; echo "Filename: ./hello-sandbox_1.0_all.deb"; echo "Size: $(stat -c %s hello-sandbox_1.0_all.deb)"; echo "SHA256: $(sha256sum < hello-sandbox_1.0_all.deb | cut -d' ' -f1)"; } > Packages
apt-get update -q -o Dir::Etc::sourceparts=- -o Dir::Etc::sourcelist=/srv/repo/list > /tmp/apt.log 2>&1 || { cat /tmp/apt.log >&2; exit 1; }
DEBIAN_FRONTEND=noninteractive apt-get install -y -q hello-sandbox -o Dir::Etc::sourceparts=- -o Dir::Etc::sourcelist=/srv/repo/list > /tmp/apt.log 2>&1 || { cat /tmp/apt.log >&2; exit 1; }
hello-sandbox; su hello-plain -s /bin/sh -c 'id -un'; getent passwd hello-sandbox | cut -d: -f1; apt-get purge -y -q hello-sandbox > /tmp/apt.log 2>&1; test ! -e /usr/bin/hello-sandbox`;
  assert.equal(await work(`${file("/srv/repo/list", "deb [trusted=yes] file:/srv/repo ./")}\n${script}`), "hello from a package\nhello-plain\nhello-sandbox\n");
});

test("sqlite3: write-ahead log, several writers, memory maps, backup", async () => {
  const script = `
rm -rf /root/s; mkdir /root/s; cd /root/s; sqlite3 db "PRAGMA journal_mode=WAL; PRAGMA mmap_size=1048576; CREATE TABLE t(n INTEGER)"
for w in 1 2 3 4; do { for i in $(seq 20); do sqlite3 -cmd '.timeout 60000' db "INSERT INTO t VALUES($i)"; done; } & done; wait
sqlite3 db "SELECT count(*), sum(n) FROM t; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA integrity_check" ".backup copy"; sqlite3 copy "SELECT count(*) FROM t"`;
  assert.equal(await work(script), "wal\n1048576\n80|840\n0|0|0\nok\n80\n");
});

test("go: builds a program with goroutines, HTTP, child processes and a lock", async () => {
  const source = `
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"
)

func main() {
	var wait sync.WaitGroup
	var lock sync.Mutex
	sum := 0
	for i := 0; i < 1000; i++ {
		wait.Add(1)
		go func(n int) { defer wait.Done(); lock.Lock(); sum += n; lock.Unlock() }(i)
	}
	wait.Wait()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served") }))
	answer, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		panic(err)
	}
	body, _ := io.ReadAll(answer.Body)
	child, err := exec.Command("echo", "child").Output()
	if err != nil {
		panic(err)
	}
	links, _ := net.Interfaces()
	fmt.Println(sum, string(body), len(links) > 0)
	fmt.Print(string(child))
}`;
  const script = `${file("/root/hello/main.go", source)}\n${file("/root/hello/go.mod", "module hello\n\ngo 1.19")}\ncd /root/hello; go build -o main .; ./main; go vet .`;
  assert.equal(await work(script), "499500 served true\nchild\n");
});

test("java: compiles and runs a program with threads, HTTP, child processes and mapped files", async () => {
  const source = `
import com.sun.net.httpserver.HttpServer;
import java.net.*;
import java.net.http.*;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.util.concurrent.*;
import java.util.stream.*;
public class Main {
  public static void main(String[] args) throws Exception {
    var pool = Executors.newFixedThreadPool(16);
    long sum = 0;
    for (var f : pool.invokeAll(IntStream.range(0, 1000).mapToObj(n -> (Callable<Integer>) () -> n).toList())) sum += f.get();
    pool.shutdown();
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/", e -> { var b = "served".getBytes(); e.sendResponseHeaders(200, b.length); e.getResponseBody().write(b); e.close(); });
    server.start();
    var answer = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.getAddress().getPort())).build(), HttpResponse.BodyHandlers.ofString());
    server.stop(0);
    var child = new String(new ProcessBuilder("echo", "child").start().getInputStream().readAllBytes()).trim();
    var path = Files.writeString(Path.of("mapped"), "mapped");
    try (var channel = FileChannel.open(path)) { var map = channel.map(FileChannel.MapMode.READ_ONLY, 0, 6); byte[] b = new byte[6]; map.get(b); System.out.println(sum + " " + answer.body() + " " + child + " " + new String(b)); }
    System.gc();
  }
}`;
  assert.equal(await work(`${file("/root/j/Main.java", source)}\ncd /root/j; javac Main.java; java -Xmx256m Main`), "499500 served child mapped\n");
});

test("ping: a program without raw sockets says so, and how long an answer took where the host allows it", async () => {
  const { stdout, stderr, exit_code } = await api.execute(id, "ping -c 1 -W 5 127.0.0.1");
  if (exit_code === 0) assert.match(stdout, /1 received/);
  else assert.match(stderr, /not permitted|denied/);
});
