"""A small service manager with a descriptor store, as systemd has one: manager.py NOTIFY_SOCKET COMMAND...

It starts the command, takes descriptors it is sent (FDSTORE=1, FDNAME=, FDSTOREREMOVE=1), and hands them to the command at every start
(LISTEN_FDS, LISTEN_FDNAMES, LISTEN_PID). A command that ends by itself is started again at once. On standard input it takes a line each:

  kill      SIGKILL to the command        restart   SIGTERM, and a start when it has ended
  names     the names in the store        drop NAME  forget a descriptor
  put NAME PATH  keep a file by a name    stop      SIGTERM, and the end
  seal NAME PATH keep the bytes of a gzip file by a name, in sealed memory, in place of what had the name

and answers with a line each: `started PID`, `ended CODE`, `names A B C`.
"""
import array
import ctypes
import fcntl
import gzip
import os
import selectors
import signal
import socket
import sys

path, command = sys.argv[1], sys.argv[2:]
store = []  # (name, descriptor)
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind(path)
os.chmod(path, 0o777)  # As systemd's.
libc = ctypes.CDLL(None)
waits = selectors.DefaultSelector()
leaving = False
unread = ""


def say(text):
    print(text, flush=True)


def start():
    pid = os.fork()
    if pid == 0:
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 1000) for _, fd in store]
        for number, fd in enumerate(high, 3):
            os.dup2(fd, number, inheritable=True)
        os.closerange(3 + len(high), 4096)
        env = dict(os.environ, NOTIFY_SOCKET=path)
        for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
            env.pop(name, None)
        if store:
            env.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(store)), LISTEN_FDNAMES=":".join(name for name, _ in store))
        os.execvpe(command[0], command, env)
    waits.register(os.pidfd_open(pid), selectors.EVENT_READ, ended)
    say(f"started {pid}")
    return pid


def ended(pidfd):
    global child
    waits.unregister(pidfd)
    os.close(pidfd)
    # Its last notifications come before its end.
    while heard():
        pass
    _, status = os.waitpid(child, 0)
    say(f"ended {os.waitstatus_to_exitcode(status)}")
    if leaving:
        sys.exit(0)
    child = start()


def forget(name):
    for entry in [entry for entry in store if entry[0] == name]:
        store.remove(entry)
        os.close(entry[1])


def heard(_=None):
    try:
        text, ancillary, _, _ = notify.recvmsg(65536, socket.CMSG_SPACE(64 * 4), socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
    except BlockingIOError:
        return False
    fds = array.array("i")
    for _, _, data in ancillary:
        fds.frombytes(data)
    lines = dict(line.split("=", 1) for line in text.decode().splitlines() if "=" in line)
    name = lines.get("FDNAME", "stored")
    if lines.get("FDSTOREREMOVE") == "1":
        forget(name)
    elif lines.get("FDSTORE") == "1":
        store.extend((name, fd) for fd in fds)
        return True
    for fd in fds:
        os.close(fd)
    return True


def told(_):
    global unread
    some = os.read(0, 65536)
    if not some:
        os.kill(child, signal.SIGKILL)
        sys.exit(0)
    *lines, unread = (unread + some.decode()).split("\n")
    for line in lines:
        obey(line.split())


def obey(words):
    global leaving
    if words[0] == "kill":
        os.kill(child, signal.SIGKILL)
    elif words[0] == "restart":
        os.kill(child, signal.SIGTERM)
    elif words[0] == "names":
        while heard():
            pass
        say("names " + " ".join(sorted(name for name, _ in store)))
    elif words[0] == "drop":
        forget(words[1])
    elif words[0] == "put":
        store.append((words[1], os.open(words[2], os.O_RDWR)))
    elif words[0] == "seal":
        forget(words[1])
        memory = os.memfd_create(words[1], os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with gzip.open(words[2]) as file, os.fdopen(os.dup(memory), "wb") as out:
            out.write(file.read())
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        store.append((words[1], memory))
    elif words[0] == "stop":
        leaving = True
        os.kill(child, signal.SIGTERM)


waits.register(notify, selectors.EVENT_READ, lambda _: heard())
waits.register(0, selectors.EVENT_READ, told)
child = start()
while True:
    for key, _ in waits.select():
        key.data(key.fileobj)
